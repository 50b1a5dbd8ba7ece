#!/usr/bin/env bash
# torch-geometric 2.8.1: Data.subgraph keeps the wrong weights if a graph has as many edges as nodes.
#
# Expected: a tensor with one entry per edge follows its edges, as it does in a graph with one edge more. The documentation of Data
# allows attributes of any name.
# Seen: whether an attribute belongs to nodes or edges is guessed from its length. If both numbers are equal (a cycle, or a molecule of
# two atoms), the name decides: an attribute without "edge" in its name is taken for one of the nodes, and is filtered by nodes.
# The subgraph gets the weights of other edges, or too many, without a warning.
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

print(f'torch-geometric {torch_geometric.__version__}')
cycle = torch.tensor([[0, 1, 2, 3, 4, 5], [1, 2, 3, 4, 5, 0]])
chord = torch.cat([cycle, torch.tensor([[0], [3]])], dim=1)
seen = {}
for name, edge_index in (('cycle', cycle), ('cycle and chord', chord)):
    weight = 10.0 * edge_index[0] + edge_index[1]
    data = Data(x=torch.zeros(6, 1), edge_index=edge_index, bond=weight)
    part = data.subgraph(torch.tensor([2, 3, 4, 5]))
    right = [weight[(edge_index.t() == pair).all(1)].item() for pair in torch.tensor([[2, 3], [3, 4], [4, 5]])]
    seen[name] = part.bond.tolist()
    print(f'{name}: {data.num_nodes} nodes, {data.num_edges} edges, bonds of the subgraph {seen[name]}, right {right}')
    assert part.num_edges == 3, 'this has changed'
assert seen == {'cycle': [23.0, 34.0, 45.0, 50.0], 'cycle and chord': [23.0, 34.0, 45.0]}, 'this has changed'
PY
