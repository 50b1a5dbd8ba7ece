#!/usr/bin/env bash
# torch-geometric 2.8.1: LaplacianLambdaMax ignores edge_weight, and takes a number per edge in edge_attr for a weight.
#
# Expected: "the highest eigenvalue of the graph Laplacian given by get_laplacian", to be passed to ChebConv, which takes edge_weight and
# lambda_max. Weights are in data.edge_weight: AddLaplacianEigenvectorPE, GCNNorm, SIGN and GDC of the same package read them there.
# Seen: a graph with weights of 5 in edge_weight has the eigenvalue of the graph without weights, 3 instead of 15. ChebConv then has
# a scaled Laplacian with an eigenvalue of 9, where Chebyshev polynomials need the interval from -1 to 1: T_4 is 51841 there.
# The bond types of a molecule in edge_attr, on the other hand, are taken for weights. There is no warning.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet torch==2.13.0 torch-geometric==2.8.1 scipy==1.17.1
cd "$folder"
"$folder/venv/bin/python" -W error::UserWarning - <<'PY'
import torch
import torch_geometric
from torch_geometric.data import Data
from torch_geometric.transforms import LaplacianLambdaMax
from torch_geometric.utils import get_laplacian, to_dense_adj, to_undirected

print(f'torch-geometric {torch_geometric.__version__}')
triangle = to_undirected(torch.tensor([[0, 0, 1], [1, 2, 2]]))
weight = torch.full((6,), 5.0)


def transformed(**attributes):
    return LaplacianLambdaMax(is_undirected=True)(Data(edge_index=triangle, num_nodes=3, **attributes)).lambda_max


def right(weight=None):
    edge_index, value = get_laplacian(triangle, weight, num_nodes=3)
    return torch.linalg.eigvalsh(to_dense_adj(edge_index, edge_attr=value)[0]).max().item()


seen = {'no weights': transformed(), 'edge_weight=5': transformed(edge_weight=weight), 'edge_attr=5': transformed(edge_attr=weight)}
print(f'dense eigenvalues: {right():.2f} without weights, {right(weight):.2f} with weights of 5')
for name, value in seen.items():
    print(f'LaplacianLambdaMax, {name}: {value:.2f}')
scaled = 2 * right(weight) / seen['edge_weight=5'] - 1
print(f'eigenvalue of the scaled Laplacian: {scaled:.2f}, T_4 of it: {8 * scaled**4 - 8 * scaled**2 + 1:.0f}')
assert abs(right() - 3) < 1e-4 and abs(right(weight) - 15) < 1e-4, 'the definition is wrong'
assert abs(seen['edge_weight=5'] - 3) < 1e-4 and abs(seen['edge_attr=5'] - 15) < 1e-4, 'this has changed'
PY
