#!/usr/bin/env bash
# torch-geometric-signed-directed 1.2.0: the output of SNEAConv(first_aggr=True) does not depend on the neighbors of a node.
#
# Expected: the documented equation sums alpha_ij h_j W over the neighbors j of node i. Attention averages the neighbors' features.
# Seen: the messages are alpha_ij h_i W: the node's own features, times weights that sum to one. So the first layer of SNEA is a linear
# layer, whatever the graph, and its attention has no effect. In later layers (first_aggr=False), the neighbors only decide how
# much of the node's own positive and negative half is taken. There is no error.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet torch==2.13.0 torch-geometric==2.8.1 torch-geometric-signed-directed==1.2.0 \
  networkx==3.6.1 numpy==2.4.6 scipy==1.17.1
cd "$folder"
"$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import torch
from torch_geometric_signed_directed.nn.signed import SNEAConv

print(f'torch-geometric-signed-directed {version("torch-geometric-signed-directed")}')
torch.manual_seed(0)
positive = torch.tensor([[0, 1, 2, 3], [1, 2, 3, 0]])
negative = torch.tensor([[2, 3, 0, 1], [0, 1, 2, 3]])
layer = SNEAConv(4, 3, first_aggr=True)
x = torch.randn(4, 4)
other = torch.cat([x[:1], 10 * torch.randn(3, 4)])  # all nodes but node 0 have other features
seen, changed = layer(x, positive, negative), layer(other, positive, negative)
own = torch.cat([layer.lin_b(x), layer.lin_u(x)], 1)
print(f'node 0: {[round(value, 4) for value in seen[0].tolist()]}')
print(f'with other neighbors: {[round(value, 4) for value in changed[0].tolist()]}')
print(f'two linear layers of its own features: {[round(value, 4) for value in own[0].tolist()]}')
assert torch.allclose(seen, own, atol=1e-5) and torch.allclose(seen[0], changed[0], atol=1e-5), 'this has changed'

# Node 0 by the equation, in the positive half: the features of nodes 0 and 3, with attention weights.
h = layer.lin_b(x)
neighbors = h[[3, 0]]
score = torch.tanh(layer.alpha_b(torch.cat([neighbors, h[[0, 0]]], 1)))
right = (torch.softmax(score, 0) * neighbors).sum(0)
print(f'positive half by the equation: {[round(value, 4) for value in right.tolist()]}')
assert not torch.allclose(seen[0, :3], right, atol=0.1), 'this has changed'
PY
