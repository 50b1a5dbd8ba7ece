#!/usr/bin/env bash
# teneto 0.5.3: the temporal degree of a directed network is the out-degree if it has few edges, and the in-degree if it has many.
#
# Expected: temporal_degree_centrality has for axis=0 "node i has Aijt summed over j and t", the out-degree, and for axis=1 the sum over i.
# Seen: an array is stored as a list of edges if less than 25 % of its entries are not zero, and else as an array. axis=0 is right for the
# list. For the array, axis is passed to the sum, which removes this axis: it sums over i. So a few more edges, anywhere, exchange the
# in-degrees and the out-degrees of all nodes. The same for calc='pertime'. Imports that this does not need are replaced.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet numpy==1.26.4 scipy==1.10.1 pandas==2.2.3 networkx==3.4.2 matplotlib==3.9.4 scikit-learn==1.5.2
"$folder/venv/bin/pip" install --quiet --no-deps teneto==0.5.3
cd "$folder"
"$folder/venv/bin/python" -W ignore - <<'PY'
import sys
from importlib.metadata import version
from unittest.mock import MagicMock

import numpy as np

# Packages for brain images, statistics and communities.
for name in ('bids', 'nilearn', 'nilearn.signal', 'nilearn.input_data', 'templateflow', 'templateflow.api', 'community', 'statsmodels',
             'statsmodels.stats', 'statsmodels.stats.weightstats'):  # fmt: skip
    sys.modules[name] = MagicMock()
from teneto import TemporalNetwork
from teneto.networkmeasures import temporal_degree_centrality

print(f'teneto {version("teneto")}')
sparse = np.zeros((6, 6, 4))
sparse[0, 1:] = 1  # The first node has edges to all others, at all times. It receives none.
dense = sparse.copy()
dense[1, 2:] = 1
dense[2, 3:] = 1
for name, array in (('sparse', sparse), ('dense', dense)):
    out, into = array.sum((1, 2)), array.sum((0, 2))
    for axis in (0, 1):
        seen = temporal_degree_centrality(array, axis=axis)
        right = out if axis == 0 else into
        print(f'{name} ({array.mean():.0%} of the entries), axis={axis}: {seen}, by the definition {right}')
        assert np.array_equal(seen, right if name == 'sparse' else (into if axis == 0 else out)), 'this has changed'
    each = temporal_degree_centrality(array, calc='pertime')
    assert np.array_equal(each, array.sum(1 if name == 'sparse' else 0)), 'this has changed'

# The same network, stored in both ways.
stored = [TemporalNetwork(from_array=dense, nettype='bd', forcesparse=flag) for flag in (True, False)]
first, second = (temporal_degree_centrality(network) for network in stored)
print(f'the dense one as a list of edges: {first}, as an array: {second}')
assert np.array_equal(first, dense.sum((1, 2))) and np.array_equal(second, dense.sum((0, 2))), 'this has changed'
PY
