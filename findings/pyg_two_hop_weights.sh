#!/usr/bin/env bash
# torch-geometric 2.8.1: TwoHop gives the features of edges to other edges if edges are not sorted.
#
# Expected: TwoHop "adds the two hop edges to the edge indices". Existing edges keep their edge_attr, and the source says: "We
# treat newly added edge features as zero-features".
# Seen: edge_index is sorted by its first row, and edge_attr keeps its order. So the edge from 2 to 3 with the feature 23 gets
# another number, and 23 goes to the edge from 0 to 1. Nothing warns.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet torch==2.13.0 torch-geometric==2.8.1 numpy==2.4.6
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
import numpy as np
import torch
import torch_geometric
from torch_geometric.data import Data
from torch_geometric.transforms import TwoHop

print(f'torch-geometric {torch_geometric.__version__}')


def by_definition(edges, weights, n):
    one, w = np.zeros((n, n), dtype=int), np.zeros((n, n))
    one[edges[0], edges[1]] = 1
    w[edges[0], edges[1]] = weights
    two = (one @ one > 0) & ~np.eye(n, dtype=bool)
    return w, (one > 0) | two


rng = np.random.default_rng(0)
chosen = np.argwhere((rng.random((8, 8)) < 0.25) & ~np.eye(8, dtype=bool))
cases = {'four edges': (np.array([[2, 0, 1, 3], [3, 1, 2, 0]]), np.array([23.0, 1.0, 12.0, 30.0]), 4)}
order = rng.permutation(len(chosen))
cases['random edges, shuffled'] = (chosen[order].T, rng.random(len(chosen)) + 1, 8)
for name, (edges, weights, n) in cases.items():
    data = Data(edge_index=torch.from_numpy(edges.copy()), edge_attr=torch.from_numpy(weights), num_nodes=n)
    result = TwoHop()(data)
    seen, kept = np.zeros((n, n)), np.zeros((n, n), dtype=bool)
    seen[result.edge_index[0], result.edge_index[1]] = result.edge_attr
    kept[result.edge_index[0], result.edge_index[1]] = True
    right, both = by_definition(edges, weights, n)
    wrong = int((seen != right).sum())
    print(f'{name}: {len(weights)} edges with features, {wrong} entries of the weighted matrix are wrong')
    if name == 'four edges':
        print(f'feature of 2 to 3: {seen[2, 3]}, right {right[2, 3]}. Feature of 0 to 1: {seen[0, 1]}, right {right[0, 1]}')
        assert seen[0, 1] == 23 and seen[2, 3] == 12 and right[2, 3] == 23, 'this has changed'
    assert np.array_equal(kept, both), 'this has changed'
    assert wrong >= 3, 'this has changed'
PY
