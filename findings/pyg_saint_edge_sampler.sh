#!/usr/bin/env bash
# torch-geometric 2.8.1: GraphSAINTEdgeSampler prefers edges of nodes with many neighbors, where the paper prefers few.
#
# Expected: the sampler is that of "GraphSAINT: Graph Sampling Based Inductive Learning Method". There, an edge of u and v is
# sampled with a probability proportional to 1/deg(u) + 1/deg(v), which has the smallest variance.
# Seen: deg_in and deg_out are already set to 1 divided by the degrees, and the probabilities to 1/deg_in + 1/deg_out. So these
# are deg(u) + deg(v). In a star of 20 nodes with a path of 20 nodes, 83 of 100 sampled edges are in the star, instead of 49.
# The method is called here for a stand-in of the sparse matrix with its three methods, as torch-sparse has no wheel.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet torch==2.13.0 torch-geometric==2.8.1 numpy==2.4.6
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from types import SimpleNamespace

import numpy as np
import torch
import torch_geometric
from torch_geometric.loader import GraphSAINTEdgeSampler

print(f'torch-geometric {torch_geometric.__version__}')
star = [(0, k) for k in range(1, 20)]
path = [(k, k + 1) for k in range(19, 39)]
edges = np.array(star + path)
row, col = torch.from_numpy(np.concatenate([edges, edges[:, ::-1]]).T.copy())
n = int(row.max()) + 1
counts = SimpleNamespace(rowcount=lambda: torch.bincount(row, minlength=n), colcount=lambda: torch.bincount(col, minlength=n))
matrix = SimpleNamespace(coo=lambda: (row, col, None), storage=counts)
# The constructor calls that of DataLoader with batch_size=1, and passes the given batch size to _sample_nodes.
sampler = SimpleNamespace(adj=matrix, E=len(row), N=n, batch_size=1)

torch.manual_seed(0)
draws = 100_000
nodes = GraphSAINTEdgeSampler._sample_nodes(sampler, draws).numpy()
u, v = nodes.T if nodes.shape[1] == 2 else (nodes[:, 0], nodes[:, 1])
frequencies = np.zeros((n, n))
np.add.at(frequencies, (np.minimum(u, v), np.maximum(u, v)), 1 / draws)
frequencies = frequencies[edges[:, 0], edges[:, 1]]

degree = np.bincount(edges.ravel(), minlength=n)
right = (1 / degree[edges]).sum(axis=1)
inverse = degree[edges].sum(axis=1).astype(float)
right, inverse = right / right.sum(), inverse / inverse.sum()
for name, part in (('edges of the star', slice(0, 19)), ('edges of the path', slice(19, None))):
    print(f'{name}: sampled in {frequencies[part].sum():.3f} of all cases, by 1/deg(u) + 1/deg(v) {right[part].sum():.3f}, '
          f'by deg(u) + deg(v) {inverse[part].sum():.3f}')  # fmt: skip
assert np.isclose(frequencies.sum(), 1)
assert np.abs(frequencies - inverse).max() < 0.003, 'this has changed'
assert np.abs(frequencies - right).max() > 0.01, 'this has changed'
PY
