#!/usr/bin/env bash
# NetComp 0.2.3: deltacon0 is the sum of absolute differences, and not the documented Frobenius norm.
#
# Expected: "The distance is the Frobenius norm of the element-wise square root of the fast belief propogation matrix." This is
# the root Euclidean distance of the DeltaCon paper (Koutra et al. 2013), whose similarity is 1 / (1 + d).
# Seen: the code has np.abs(np.sqrt(S1) - np.sqrt(S2)).sum(). The result is several times larger, and grows with the number of
# nodes. Some pairs of graphs change their order: one is nearer by the norm, and the other one is nearer by the sum. NetComp
# asks for NetworkX 1, which does not run on current Python. The functions here run with NetworkX 2.8.8.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet numpy==1.26.4 scipy==1.11.4 networkx==2.8.8 setuptools==80.9.0
"$folder/venv/bin/pip" install --quiet --no-deps netcomp==0.2.3
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import netcomp
import networkx as nx
import numpy as np

print(f'NetComp {version("netcomp")}')
first, second, third = (nx.to_numpy_array(nx.gnp_random_graph(8, 0.6, seed=seed)) for seed in (1, 2, 4))


def affinity(adjacency):
    degrees = adjacency.sum(1)
    epsilon = 1 / (1 + degrees.max())
    return np.linalg.inv(np.eye(len(adjacency)) + epsilon**2 * np.diag(degrees) - epsilon * adjacency)


def by_definition(a, b):
    return np.sqrt(((np.sqrt(affinity(a)) - np.sqrt(affinity(b))) ** 2).sum())


graphs = [nx.to_numpy_array(nx.gnp_random_graph(20, 0.15 + 0.05 * (seed % 6), seed=seed)) for seed in range(40)]
seen = np.array([netcomp.deltacon0(graphs[0], graph) for graph in graphs])
right = np.array([by_definition(graphs[0], graph) for graph in graphs])
sums = [np.abs(np.sqrt(affinity(graphs[0])) - np.sqrt(affinity(graph))).sum() for graph in graphs]
print(f'distances {seen[1:5].round(3)}, by the definition {right[1:5].round(3)}')
assert np.allclose(seen, sums) and (seen[1:] > 5 * right[1:]).all(), 'this has changed'
pairs = [(i, j) for i in range(1, 40) for j in range(1, 40) if seen[i] < 0.98 * seen[j] and right[i] > 1.02 * right[j]]
i, j = pairs[0]
print(f'graphs {i} and {j}: {seen[i]:.3f} and {seen[j]:.3f}, by the definition {right[i]:.3f} and {right[j]:.3f}')
assert pairs
PY
