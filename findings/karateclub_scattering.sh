#!/usr/bin/env bash
# karateclub 1.3.3: the wavelets of GeoScattering never reach beyond the neighbors of a node, and do not vanish on constant features.
#
# Expected: the cited paper (Gao, Wolf and Hirn 2019) has wavelets P^(2^j) - P^(2^(j + 1)) of the lazy random walk P, which compare
# averages over 2^j and 2^(j + 1) steps. Rows of all powers of P sum to one. So constant features give 0, at all scales.
# Seen: the powers are those of the entries, A_hat.power(n), and not those of the matrix. There are no scales: all wavelets are matrices on
# the same edges, with entries such as 0.25^16, which vanish in number. On a cycle, where all nodes look the same, the scattering of
# the first order is not 0, and a cycle of 64 nodes has no wavelet that sees farther than one edge.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet networkx==2.6.3 numpy==1.26.4 scipy==1.11.4 scikit-learn==1.5.2
"$folder/venv/bin/pip" install --quiet --no-deps karateclub==1.3.3
cd "$folder"
"$folder/venv/bin/python" -W ignore - <<'PY'
import sys
from importlib import import_module
from importlib.metadata import distribution
from types import ModuleType

import networkx as nx
import numpy as np

package = distribution('karateclub')
# The packages without their imports.
for name in ('karateclub', 'karateclub.graph_embedding', 'karateclub.node_embedding', 'karateclub.node_embedding.neighbourhood'):
    sys.modules[name] = ModuleType(name)
    sys.modules[name].__path__ = [str(package.locate_file(name.replace('.', '/')))]
sys.modules['karateclub.estimator'] = import_module('karateclub.estimator')
print(f'karateclub {package.version}')
scattering = import_module('karateclub.graph_embedding.geoscattering').GeoScattering
cycle = nx.cycle_graph(64)
model = scattering(order=4, moments=4)
model.fit([cycle.copy()])
first = model.get_embedding()[0][3 * 4 :].reshape(-1)[: 3 * 5 * 3].reshape(3, 5, 3)  # Three features, five wavelets, three moments.
features = np.log(2 + 2 + 1), 32.0, 0.0  # Logarithm of the degree with a self-loop, eccentricity and clustering coefficient.
loops = nx.to_numpy_array(cycle) + np.eye(64)
lazy = 0.5 * (np.eye(64) + loops / loops.sum(1, keepdims=True))
used = 0.5 * (np.eye(64) + loops / (loops.sum(1, keepdims=True) + 1))  # With networkx, a self-loop counts twice in the degree.
for j in range(5):
    right, entries = (power(m, 2**j) - power(m, 2 ** (j + 1)) for power, m in ((np.linalg.matrix_power, lazy), (np.power, used)))
    value = [np.abs(psi @ np.full(64, features[1])).sum() for psi in (right, entries)]
    far = [int(np.abs(np.flatnonzero(psi[32]) - 32).max()) for psi in (right, entries)]
    print(f'wavelet {j}: first moment of the eccentricity {first[1, j, 0]:.4f}, of powers of the matrix {value[0]:.4f}. '
          f'Farthest node {far[1]}, of powers of the matrix {far[0]}')  # fmt: skip
    assert np.isclose(first[1, j, 0], value[1]) and value[0] < 1e-9, 'this has changed'
    assert far == [min(2 ** (j + 1), 32), 1], 'this has changed'
assert first[1, 0, 0] > 100, 'this has changed'
PY
