#!/usr/bin/env bash
# torch-geometric 2.8.1: Data.coalesce() gives the weights of edges to other edges.
#
# Expected: documented as "sorts and removes duplicated entries from edge indices". Attributes of edges follow their edges, as they do
# in Data.sort(), and as edge_attr does here.
# Seen: only edge_index and edge_attr are reordered. edge_weight (the name that GCNNorm and the layers use) and any other attribute
# of edges keep their old order, and their old number if duplicates were removed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet torch==2.13.0 torch-geometric==2.8.1
cd "$folder"
"$folder/venv/bin/python" - <<'PY'
import torch
import torch_geometric
from torch_geometric.data import Data


def edges(data, name):
    return {(u, v): w for (u, v), w in zip(data.edge_index.t().tolist(), data[name].tolist())}


print(f'torch-geometric {torch_geometric.__version__}')
weight = torch.tensor([5.0, 7.0, 9.0])
data = Data(edge_index=torch.tensor([[2, 1, 0], [0, 2, 1]]), edge_weight=weight, edge_attr=weight.clone(), num_nodes=3)
before, after = edges(data, 'edge_weight'), edges(data.coalesce(), 'edge_weight')
print(f'edge_weight: {before}\nafter coalesce(): {after}\nafter sort(): {edges(data.sort(), "edge_weight")}')
print(f'edge_attr after coalesce(): {edges(data.coalesce(), "edge_attr")}')
twice = Data(edge_index=torch.tensor([[0, 0], [1, 1]]), edge_weight=torch.ones(2), num_nodes=2).coalesce()
print(f'duplicates: {twice}')
assert edges(data.sort(), 'edge_weight') == edges(data.coalesce(), 'edge_attr') == before, 'this has changed'
assert after == {(0, 1): 5.0, (1, 2): 7.0, (2, 0): 9.0} and twice.edge_weight.numel() == 2, 'this has changed'
PY
