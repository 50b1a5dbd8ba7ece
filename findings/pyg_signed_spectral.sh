#!/usr/bin/env bash
# torch-geometric 2.8.1: for undirected graphs, SignedGCN.create_spectral_features takes positive edges for three times as strong.
#
# Expected: "Creates spectral node features based on positive and negative edges": as in the cited paper, the singular vectors of the matrix
# with 1 for positive and -1 for negative edges. Exchanging both kinds negates the matrix, and keeps the vectors. An undirected graph
# of PyG has each edge in both directions.
# Seen: edges are stored as 2 and 0, both directions are added, and then 1 is subtracted. An edge that comes in both directions has 4 and 0,
# so 3 and -1 at the end. Edges in one direction are right. In a directed graph, pairs that trust each other count three times.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet torch==2.13.0 torch-geometric==2.8.1 scikit-learn==1.9.1 scipy==1.17.1 numpy==2.4.6
cd "$folder"
"$folder/venv/bin/python" -W ignore - <<'PY'
import numpy as np
import torch
import torch_geometric
from torch_geometric.nn import SignedGCN

print(f'torch-geometric {torch_geometric.__version__}')
rng = np.random.default_rng(0)
sign = np.triu(rng.choice([-1, 0, 1], size=(12, 12), p=[0.3, 0.4, 0.3]), 1)
positive, negative = (torch.from_numpy(np.stack(np.nonzero(sign == value))) for value in (1, -1))
both = lambda edge_index: torch.cat([edge_index, edge_index.flip(0)], 1)


def projection(matrix):
    """The projection to the first three singular vectors."""
    vectors = np.linalg.svd(matrix)[2][:3]
    return vectors.T @ vectors


def features(first, second):
    np.random.seed(0)
    x = SignedGCN(3, 4, 2).create_spectral_features(first, second, 12).double().numpy()
    return x @ x.T


def distance(first, second):
    return np.linalg.norm(first - second)


signs = (sign + sign.T).astype(float)
right, wrong = projection(signs), projection(np.where(signs > 0, 3.0, signs))
assert distance(right, projection(-signs)) < 1e-9
one = distance(features(positive, negative), right)
two = distance(features(both(positive), both(negative)), right)
swapped = distance(features(both(negative), both(positive)), features(both(positive), both(negative)))
print(f'distance to the right space: {one:.4f} with one direction of each edge, {two:.4f} with both')
print(f'distance after exchanging positive and negative edges: {swapped:.4f}')
assert one < 1e-3 and two > 0.3 and swapped > 0.3, 'this has changed'
assert distance(features(both(positive), both(negative)), wrong) < 1e-3, 'this has changed'
PY
