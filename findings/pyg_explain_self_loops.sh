#!/usr/bin/env bash
# torch-geometric 2.8.1: if every node has a self-loop, masks of edges (GNNExplainer, fidelity) remove other edges than they name.
#
# Expected: an edge mask that is 0 at one edge, and 1 elsewhere, removes the messages of this edge. It does, with no self-loop or
# with one self-loop. Graphs in which every node has one are what the transform AddSelfLoops gives.
# Seen: GCNConv and GATConv move self-loops to the end. The mask is reordered in the same way, but only if the number of messages
# differs from the number of edges. With one self-loop at each node, both numbers are equal, and the mask keeps the order of the
# edges before: the mask that removes 0 -> 1 removes 1 -> 2. set_masks, fidelity, GNNExplainer and PGExplainer share this code. There is
# no warning.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet torch==2.13.0 torch-geometric==2.8.1
cd "$folder"
"$folder/venv/bin/python" - <<'PY'
import torch
import torch_geometric
from torch_geometric.explain.algorithm.utils import clear_masks, set_masks
from torch_geometric.nn import GATConv, GCNConv

print(f'torch-geometric {torch_geometric.__version__}')
torch.manual_seed(0)
x = torch.eye(3)
path = [(0, 1), (1, 2)]
graphs = {
    'no self-loop': path,
    'one self-loop': [(0, 0), *path],
    'self-loops at all nodes, sorted': sorted([*path, (0, 0), (1, 1), (2, 2)]),
    'self-loops at all nodes, last': [*path, (0, 0), (1, 1), (2, 2)],
}
seen = {}
for conv in (GCNConv(3, 3), GATConv(3, 3)):
    for name, edges in graphs.items():
        edge_index = torch.tensor(edges).t()
        mask = torch.ones(len(edges))
        mask[edges.index((0, 1))] = 0.0
        full = conv(x, edge_index)
        set_masks(conv, mask, edge_index, apply_sigmoid=False)
        changed = ((conv(x, edge_index) - full).abs().sum(1) > 1e-6).nonzero().view(-1).tolist()
        clear_masks(conv)
        seen[type(conv).__name__, name] = changed
        print(f'{type(conv).__name__}, {name}: without 0 -> 1, the outputs of nodes {changed} change')
wrong = [seen.pop((kind, 'self-loops at all nodes, sorted')) for kind in ('GCNConv', 'GATConv')]
assert wrong == [[2], [2]] and all(changed == [1] for changed in seen.values()), 'this has changed'
PY
