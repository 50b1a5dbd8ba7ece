#!/usr/bin/env bash
# bctpy 0.6.1: the search information of nodes without a path is 0 in undirected networks, and infinite in directed ones.
#
# Expected: search_information is "the amount of information (measured in bits) that a random walker needs to follow the
# shortest path between a given pair of nodes". Without a path, the probability is 0, and the information is infinite, as the
# function returns it for directed networks. 0 bits is that of a neighbor which is reached with probability 1.
# Seen: for a symmetric matrix, pairs of different components keep the initial 0. So the farthest pairs appear as the nearest,
# and lower the mean. If one weight is made slightly asymmetric, the same pairs have an infinite value.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet bctpy==0.6.1 numpy==1.26.4 scipy==1.13.1
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import bct
import numpy as np

print(f'bctpy {version("bctpy")}')
# Two components, 0-1-2 and 3-4-5-3.
weights = np.zeros((6, 6))
for i, j in ((0, 1), (1, 2), (3, 4), (4, 5), (3, 5)):
    weights[i, j] = weights[j, i] = 1
directed = weights.copy()
directed[0, 1] = 1.01
component = np.array([0, 0, 0, 1, 1, 1])
apart = component[:, None] != component
chance = np.linalg.matrix_power(np.eye(6) + weights, 6)[apart]  # the numbers of walks of up to 6 steps
results = {name: bct.search_information(matrix) for name, matrix in (('undirected', weights), ('directed', directed))}
for name, seen in results.items():
    print(f'{name}: of nodes apart {np.unique(seen[apart])}, of nodes 0 and 1 {seen[0, 1]:.1f}, of 0 and 2 {seen[0, 2]:.1f}, '
          f'walks between nodes apart {chance.sum():.0f}, right is inf')  # fmt: skip
assert chance.sum() == 0
assert np.isclose(results['undirected'][0, 1], 0) and np.isclose(results['undirected'][0, 2], 1)
assert np.all(np.isinf(results['directed'][apart]))
assert np.all(results['undirected'][apart] == 0), 'this has changed'
PY
