#!/usr/bin/env bash
# torch-geometric 2.8.1 and networkit 11.3: every round trip of an undirected graph doubles its self-loops.
#
# Expected: to_networkit and from_networkit are inverse to each other, as to_networkx and from_networkx are. A self-loop is one
# column of edge_index.
# Seen: from_networkit lists each edge in both directions, also an edge from a node to itself. to_networkit keeps both. After three
# trips, one self-loop of weight 3 is eight of them: GCNConv, degree and random walks see a weight of 24.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet torch==2.13.0 torch-geometric==2.8.1 networkit==11.3 networkx==3.6.1 scipy==1.17.1
cd "$folder"
"$folder/venv/bin/python" - <<'PY'
import networkit
import torch
import torch_geometric
from torch_geometric.data import Data
from torch_geometric.utils import from_networkit, from_networkx, to_dense_adj, to_networkit, to_networkx

print(f'torch-geometric {torch_geometric.__version__}, networkit {networkit.__version__}')
edge_index, weight = torch.tensor([[0, 0, 1], [0, 1, 0]]), torch.tensor([3.0, 0.5, 0.5])
graph = to_networkx(Data(edge_index=edge_index, weight=weight, num_nodes=2), edge_attrs=['weight'], to_undirected=True)
peer = from_networkx(graph)
print(f'by networkx: {peer.edge_index.tolist()}, {peer.weight.tolist()}')
loops = []
for trip in range(4):
    matrix = to_dense_adj(edge_index, edge_attr=weight)[0]
    loops.append((int((edge_index[0] == edge_index[1]).sum()), matrix[0, 0].item()))
    print(f'by networkit, {trip} trips: {edge_index.tolist()}, matrix {matrix.tolist()}')
    edge_index, weight = from_networkit(to_networkit(edge_index, weight, directed=False))
assert peer.edge_index.tolist() == [[0, 0, 1], [0, 1, 0]] and peer.weight.tolist() == [3.0, 0.5, 0.5], 'this has changed'
assert loops == [(1, 3.0), (2, 6.0), (4, 12.0), (8, 24.0)], 'this has changed'
PY
