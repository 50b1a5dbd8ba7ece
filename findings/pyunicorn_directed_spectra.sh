#!/usr/bin/env bash
# pyunicorn 1.0.0: eigenvector centralities of directed networks are of no eigenvector, and the synchronizability is not of the undirected graph.
#
# Expected: nsi_eigenvector_centrality: "For a directed network, this uses the right eigenvectors". msf_synchronizability: "For directed
# networks, the undirected Laplacian matrix is used" (docstrings, www.pik-potsdam.de/~donges/pyunicorn/api/core/network.html).
# Seen: both centralities in core/network.py call eigsh of SciPy, which is for symmetric matrices, for the matrix of the directed network.
# The result is neither a right nor a left eigenvector, and it depends on the random start of eigsh: two networks with the same links have
# different centralities. msf_synchronizability takes laplacian(), which has the directed links and their out-degrees.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet numpy==2.4.6 scipy==1.17.1 igraph==1.0.0 h5netcdf==1.8.2 h5py==3.16.0 tqdm==4.70.1
"$folder/venv/bin/pip" install --quiet --no-deps pyunicorn==1.0.0
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import numpy as np
from pyunicorn.core.network import Network

print(f'pyunicorn {version("pyunicorn")}')
adjacency = Network.SmallDirectedTestNetwork().adjacency
directed, *same = (Network(adjacency=adjacency, directed=True, node_weights=np.arange(1.0, 7), silence_level=3) for _ in range(6))
undirected = directed.undirected_copy()
undirected.silence_level = 3
assert directed.directed and not undirected.directed


def principal(matrix):
    values, vectors = np.linalg.eig(matrix)
    vector = vectors[:, np.argmax(values.real)].real
    return vector / vector[np.argmax(abs(vector))]


def is_eigenvector(matrix, vector):
    image = matrix @ vector
    return np.allclose(image, vector * (vector @ image) / (vector @ vector), atol=1e-3)


for name, network in (('undirected', undirected), ('directed', directed)):
    a, w = np.array(network.adjacency, dtype=float), np.array(network.node_weights)
    weighted = (a + np.eye(len(a))) * np.sqrt(np.outer(w, w))
    for label, matrix, seen in (('eigenvector_centrality', a, network.eigenvector_centrality()),
                                ('nsi_eigenvector_centrality', weighted, network.nsi_eigenvector_centrality())):  # fmt: skip
        scale = np.sqrt(w) if label.startswith('nsi') else np.ones(len(a))
        right = principal(matrix) / scale
        right /= right[np.argmax(abs(right))]
        either = [is_eigenvector(m, seen * scale) for m in (matrix, matrix.T)]
        print(f'{name}, {label}: {seen.round(3)}, right eigenvector {right.round(3) + 0}. A right, a left eigenvector: {either}')
        if network is undirected:
            assert all(either) and np.allclose(seen, right, atol=1e-3), 'this has changed'
        else:
            others = [getattr(other, label)() for other in same]
            spread = np.ptp(others, axis=0).max()
            print(f'largest difference of five networks with the same links: {spread:.3f}')
            assert not any(either) and spread > 0.05, 'this has changed'

a = np.maximum(directed.adjacency, directed.adjacency.T)
values = np.linalg.eigvalsh(np.diag(a.sum(1)) - a)
right = values[-1] / values[1]
seen = [network.msf_synchronizability() for network in (undirected, directed)]
print(f'msf_synchronizability: undirected {seen[0]:.3f}, directed {seen[1]:.3f}, of the undirected Laplacian {right:.3f}')
assert np.isclose(seen[0], right) and abs(seen[1] - right) > 1, 'this has changed'
PY
