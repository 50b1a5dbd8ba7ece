#!/usr/bin/env bash
# egnn-pytorch 0.2.8: only_sparse_neighbors loses edges of the adjacency matrix, and adds others from nodes that are not adjacent.
#
# Expected: "Only attend to sparse neighbors, given to the network as an adjacency matrix" (README): with only_sparse_neighbors=True, a
# node has messages from the nodes with 1 in its row.
# Seen: each node takes as many nodes as the largest row has, and itself is always one of these. Of a matrix without self-loops, a node of
# the largest degree loses a neighbour: the middle of a star has two of three, a cycle one of two. Which one it loses has no order.
# Without a mask, nodes of a smaller degree are filled up with the nearest nodes that are not adjacent. A mask of ones removes these. With
# self-loops and with a mask, as in the example, all is right.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet torch==2.13.0 numpy==2.4.6
"$folder/venv/bin/pip" install --quiet --no-deps egnn-pytorch==0.2.8 einops==0.8.2
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import numpy as np
import torch
from egnn_pytorch import EGNN

print(f'egnn-pytorch {version("egnn-pytorch")}')
n = 5
torch.manual_seed(0)
feats, coors = torch.randn(1, n, 4), torch.randn(1, n, 3)
ones = torch.ones(1, n, dtype=torch.bool)
layer = EGNN(dim=4, only_sparse_neighbors=True, init_eps=1.0)


@torch.no_grad()
def senders(adjacency, mask):
    """Which other nodes change the new features of a node, by their own features."""
    found = np.zeros((n, n), dtype=int)
    before = layer(feats, coors, mask=mask, adj_mat=adjacency)[0]
    for j in range(n):
        other = feats.clone()
        other[0, j] += 1
        found[:, j] = (layer(other, coors, mask=mask, adj_mat=adjacency)[0] - before)[0].abs().amax(1) > 1e-6
    np.fill_diagonal(found, 0)
    return found


graphs = {'star of three leaves, and one node on its own': [(0, 1), (0, 2), (0, 3)], 'cycle': [(i, (i + 1) % n) for i in range(n)]}
for name, edges in graphs.items():
    right = np.zeros((n, n), dtype=int)
    for i, j in edges:
        right[i, j] = right[j, i] = 1
    for loops in (False, True):
        for mask in (ones, None):
            adjacency = torch.from_numpy(right + loops * np.eye(n, dtype=int)).bool()
            seen = senders(adjacency, mask)
            lost, added = int((right > seen).sum()), int((seen > right).sum())
            print(f'{name}{", with self-loops" if loops else ""}{"" if mask is None else ", with a mask of ones"}: '
                  f'of {right.sum()} messages along edges, {lost} are lost, and {added} come from nodes that are not adjacent')  # fmt: skip
            degree = right.sum(1)
            assert lost == (0 if loops else (degree == degree.max()).sum()), 'this has changed'
            assert (added > 0) == (mask is None and degree.min() < degree.max()), 'this has changed'
PY
