#!/usr/bin/env bash
# torch-geometric 2.8.1: LabelPropagation with weights of 1 differs from LabelPropagation without weights.
#
# Expected: the documented equation has D^(-1/2) A D^(-1/2), and edge_weight is documented as "the edge weights". Weights of 1 mean
# the same graph, as in GCNConv, APPNP and the other layers that take this argument.
# Seen: the matrix is normalised only if edge_weight is None. With weights, the raw matrix A is used: node 1 gets the sum of its
# neighbors' labels, and the default clamp to [0, 1] hides the growth. CorrectAndSmooth passes its weights the same way.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet torch==2.13.0 torch-geometric==2.8.1
cd "$folder"
"$folder/venv/bin/python" - <<'PY'
import torch
import torch_geometric
from torch_geometric.nn import APPNP, LabelPropagation

print(f'torch-geometric {torch_geometric.__version__}')
edge_index = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
y = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
ones = torch.ones(4)
propagation, peer = LabelPropagation(num_layers=1, alpha=0.5), APPNP(K=1, alpha=0.5, add_self_loops=False)
without, weighted = propagation(y, edge_index), propagation(y, edge_index, edge_weight=ones)
print(f'without weights:\n{without}\nweights of 1:\n{weighted}')
print(f'APPNP, without weights and with weights of 1: equal {torch.equal(peer(y, edge_index), peer(y, edge_index, ones))}')
degree = torch.tensor([1.0, 2.0, 1.0]).rsqrt()
adj = torch.zeros(3, 3)
adj[edge_index[0], edge_index[1]] = 1.0
expected = 0.5 * y + 0.5 * (degree.view(-1, 1) * adj * degree) @ y
assert torch.allclose(without, expected) and torch.allclose(weighted, (0.5 * y + 0.5 * adj @ y).clamp(0, 1)), 'this has changed'
assert not torch.allclose(without, weighted), 'this has changed'
PY
