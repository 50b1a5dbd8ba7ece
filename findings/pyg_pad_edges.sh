#!/usr/bin/env bash
# torch-geometric 2.8.1: Pad gives the padded edges of a full graph to the first node of the next graph in the batch.
#
# Expected: "The edge_index tensor is padded with the index of the first padded node", and max_num_nodes "must be greater than or equal to
# the maximum number of nodes of any graph". So the largest graph of the data set needs no padded node, and padding changes no output.
# Seen: if a graph already has max_num_nodes nodes, its padded edges are self-loops of the node behind its last one. In a batch, this is node
# 0 of the next graph, whose sum over neighbors grows by itself, once per padded edge. As the last graph of a batch, it raises
# an IndexError. Both happen by default: without max_num_edges, edges are padded to max_num_nodes^2.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet torch==2.13.0 torch-geometric==2.8.1
cd "$folder"
"$folder/venv/bin/python" -W error::UserWarning - <<'PY'
import torch
import torch_geometric
from torch_geometric.data import Batch, Data
from torch_geometric.nn import SimpleConv
from torch_geometric.transforms import Pad
from torch_geometric.utils import to_undirected

print(f'torch-geometric {torch_geometric.__version__}')


def path(size):
    edge_index = to_undirected(torch.stack([torch.arange(size - 1), torch.arange(1, size)]))
    return Pad(max_num_nodes=3)(Data(x=torch.ones(size, 1), edge_index=edge_index))


def neighbors(*graphs):
    batch = Batch.from_data_list(list(graphs))
    return SimpleConv(aggr='sum')(batch.x, batch.edge_index).view(-1).tolist()


large, small = path(3), path(2)
print(f'path of 3 nodes, padded to 3: edges {large.edge_index.t().tolist()}')
alone, behind = neighbors(small), neighbors(large, small)[3:]
print(f'sums over the neighbors, path of 2 nodes alone: {alone}, behind the path of 3 nodes: {behind}')
try:
    last = str(neighbors(small, large))
except IndexError as error:
    last = type(error).__name__
print(f'path of 3 nodes as the last graph: {last}')
assert alone[:2] == [1, 1] and behind[:2] == [1 + 5, 1] and last == 'IndexError', 'this has changed'
PY
