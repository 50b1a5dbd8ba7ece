#!/usr/bin/env bash
# pyunicorn 1.0.0: two ways give average path lengths that differ by (n - 1)^2, and one isolated node breaks average_neighbors_degree.
#
# Expected: distance_based_measures: "Return a dictionary of local and global measures that are based on shortest path lengths", with
# "average_path_length", as the method of this name (docstrings, www.pik-potsdam.de/~donges/pyunicorn/api/core/network.html). The other
# values are those of the methods. average_neighbors_degree: "For each node, return the average degree of its neighbors".
# Seen: distance_based_measures in core/network.py divides the sum by N and multiplies it by N - 1, where it should divide by both: 41.7 for
# the small test network of 6 nodes, with a diameter of 3. average_neighbors_degree divides all n values by the degrees that are not 0,
# which are fewer with an isolated node: a ValueError.
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
network = Network.SmallTestNetwork()
network.silence_level = 3
adjacency = np.array(network.adjacency)
n = len(adjacency)
d = np.where(adjacency > 0, 1, np.inf)
np.fill_diagonal(d, 0)
for k in range(n):
    d = np.minimum(d, d[:, [k]] + d[[k]])
right = d.sum() / (n * (n - 1))
measures = network.distance_based_measures()
seen, method = measures['average_path_length'], network.average_path_length()
print(f'average path length: right {right:.3f}, average_path_length() {method:.3f}, distance_based_measures() {seen:.3f}. '
      f'Diameter {network.diameter()}')  # fmt: skip
assert np.isclose(method, right) and np.isclose(seen, right * (n - 1) ** 2), 'this has changed'
for name in ('closeness', 'global_efficiency', 'nsi_average_path_length', 'nsi_closeness', 'nsi_global_efficiency'):
    assert np.allclose(measures[name], getattr(network, name)()), name

mean = adjacency @ adjacency.sum(1) / adjacency.sum(1)
print(f'average_neighbors_degree: {network.average_neighbors_degree().round(3)}, right {mean.round(3)}')
assert np.allclose(network.average_neighbors_degree(), mean)
larger = Network(adjacency=np.pad(adjacency, (0, 1)), silence_level=3)
assert larger.degree()[-1] == 0 and larger.max_neighbors_degree()[-1] == 0
try:
    larger.average_neighbors_degree()
except ValueError as e:
    print(f'with an isolated node: {e}')
else:
    raise AssertionError('this has changed')
PY
