#!/usr/bin/env bash
# torch-geometric 2.8.1: ChebConv(normalization="rw") applies the transposed Laplacian, also on an undirected graph.
#
# Expected: the documentation has Z = L X with L = I - D^(-1) A for "rw". This L maps constant features to zero, since each row of the
# walk matrix D^(-1) A sums to one.
# Seen: the weight 1 / degree of the node that sends is given to its message, so the matrix is I - A D^(-1). The center of a star
# with three leaves gets 1 - 3 instead of 1 - 1, without a warning. "sym" and None, whose matrices are symmetric, are right.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet torch==2.13.0 torch-geometric==2.8.1
cd "$folder"
"$folder/venv/bin/python" - <<'PY'
import torch
import torch_geometric
from torch_geometric.nn import ChebConv

print(f'torch-geometric {torch_geometric.__version__}')
edge_index = torch.tensor([[0, 1, 0, 2, 0, 3], [1, 0, 2, 0, 3, 0]])  # A star with its center at node 0.
adj = torch.zeros(4, 4)
adj[edge_index[0], edge_index[1]] = 1.0
degree, eye = adj.sum(1), torch.eye(4)
seen = {}
for kind, laplacian in (
    (None, degree.diag() - adj),
    ('sym', eye - degree.rsqrt().view(-1, 1) * adj * degree.rsqrt()),
    ('rw', eye - adj / degree.view(-1, 1)),
):
    conv = ChebConv(4, 4, K=2, normalization=kind, bias=False)  # Only Z of k = 2, which is (2 / 2) L X - X.
    torch.nn.init.zeros_(conv.lins[0].weight)
    torch.nn.init.eye_(conv.lins[1].weight)
    applied = (conv(eye, edge_index, lambda_max=2.0) + eye).detach()
    seen[kind] = [torch.allclose(applied, matrix, atol=1e-6) for matrix in (laplacian, laplacian.t())]
    print(f'{kind}: the documented matrix {seen[kind][0]}, its transpose {seen[kind][1]}, of ones: {applied.sum(1).tolist()}')
assert seen == {None: [True, True], 'sym': [True, True], 'rw': [False, True]}, 'this has changed'
PY
