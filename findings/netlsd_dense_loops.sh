#!/usr/bin/env bash
# netlsd 1.0.2: a dense adjacency matrix with self-loops is taken for a Laplacian, so that dense and sparse give other signatures.
#
# Expected: "Accepts matrices, common Python graph libraries' graphs, or vectors of eigenvalues". The same matrix has the same heat trace
# as numpy.ndarray, as scipy.sparse and as networkx graph. All eigenvalues of a Laplacian are at least 0, so the trace falls with the
# time, and is at most 1 after the default normalisation.
# Seen: a matrix is a Laplacian, and used as it is, if no entry besides the diagonal is positive. For dense matrices, the test subtracts the
# diagonal as a row from all rows, so that A + I (the matrix of GCN) passes too. The signature is the one of the eigenvalues of A + I, some
# of which are negative: it grows to 120 at time 10, where 0.27 is right, and beyond 1e26 at time 100, the end of the default times.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet netlsd==1.0.2 networkx==3.6.1 numpy==2.4.6 scipy==1.17.1
"$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import netlsd
import networkx as nx
import numpy as np
from scipy.sparse import csr_matrix

print(f'netlsd {version("netlsd")}')
times = np.array([0.1, 1.0, 10.0, 100.0])
path, seen = nx.to_numpy_array(nx.path_graph(4)), {}
for loop in (0, 1):
    matrix = path + loop * np.eye(4)
    root = np.diag(matrix.sum(1) ** -0.5)
    right = np.exp(-np.outer(times, np.linalg.eigvalsh(np.eye(4) - root @ matrix @ root))).mean(1)
    kinds = {'dense': matrix, 'sparse': csr_matrix(matrix), 'networkx': nx.from_numpy_array(matrix)}
    for kind, value in kinds.items():
        seen[loop, kind] = netlsd.heat(value, times)
        print(f'path, self-loops of weight {loop}, {kind}: {seen[loop, kind]}, definition {right.round(3)}')
        assert np.allclose(seen[loop, kind], right) == ((loop, kind) != (1, 'dense')), 'this has changed'
assert seen[1, 'dense'][2] > 100 and seen[1, 'dense'][3] > 1e20, 'this has changed'
PY
