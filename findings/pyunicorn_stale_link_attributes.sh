#!/usr/bin/env bash
# pyunicorn 1.0.0: after a second set_link_attribute, degree and all path lengths are still those of the first.
#
# Expected: set_link_attribute: "Set the values of some link attribute. These can be used as weights in measures requiring link weights"
# (docstring, www.pik-potsdam.de/~donges/pyunicorn/api/core/network.html). Measures use the present values, those of a new network with them.
# Seen: the results are cached. set_link_attribute counts its calls in _mut_la, but degree and path_lengths in core/network.py do not depend
# on it, as outdegree, indegree and betweenness do. After the weights are set again, the strengths of degree are not those of outdegree,
# which are the same for an undirected network. path_lengths, average_path_length, closeness, and global_efficiency are old, too.
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
first = np.array([[0, 1, 2, 0], [1, 0, 5, 0], [2, 5, 0, 4], [0, 0, 4, 0]], dtype=float)
second = np.array([[0, 9, 1, 0], [9, 0, 2, 0], [1, 2, 0, 3], [0, 0, 3, 0]], dtype=float)
measures = ('outdegree', 'betweenness', 'degree', 'path_lengths', 'average_path_length', 'closeness', 'global_efficiency')


def values(network):
    return {name: np.array(getattr(network, name)('weight')) for name in measures}


def distances(weights):
    """Floyd and Warshall."""
    d = np.where(weights > 0, weights, np.inf)
    np.fill_diagonal(d, 0)
    for k in range(len(d)):
        d = np.minimum(d, d[:, [k]] + d[[k]])
    return d


def new(weights):
    network = Network(adjacency=(weights > 0).astype(int), silence_level=3)
    network.set_link_attribute('weight', weights)
    return network


network = new(first)
before = values(network)
network.set_link_attribute('weight', second)
after, right = values(network), values(new(second))
assert np.allclose(right['degree'], second.sum(1)) and np.allclose(right['path_lengths'], distances(second))
for name in measures:
    print(f'{name}: {after[name].round(3).tolist()}, of a new network with these weights {right[name].round(3).tolist()}')
    if name in ('outdegree', 'betweenness'):
        assert np.allclose(after[name], right[name]), 'this has changed'
    else:
        assert np.allclose(after[name], before[name]) and not np.allclose(after[name], right[name]), 'this has changed'
PY
