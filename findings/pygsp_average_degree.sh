#!/usr/bin/env bash
# pygsp 0.6.1: compute_avg_adj_deg does not average degrees: it is 1 for every node of a complete graph of any size.
#
# Expected: "The average adjacency degree is the average of the degrees of a node and its neighbors": n - 1 in a complete graph of n nodes,
# whose degrees are all n - 1.
# Seen: the sum of row i of A A is the sum of the degrees of the neighbors, but A holds booleans, whose product is a boolean. So the
# nodes within two steps are counted, each once. The own degree is left out, though the divisor counts the node. In a star with
# five leaves, the center has 0.17 instead of 1.67.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet pygsp==0.6.1 numpy==2.4.6 scipy==1.17.1
"$folder/venv/bin/python" - <<'PY'
from importlib.metadata import version

import numpy as np
from pygsp import graphs
from pygsp.features import compute_avg_adj_deg

print(f'pygsp {version("pygsp")}')
star = np.zeros((6, 6))
star[0, 1:] = star[1:, 0] = 1
seen = {}
for name, adjacency in (('star', star), ('complete 4', 1 - np.eye(4)), ('complete 20', 1 - np.eye(20))):
    degree = adjacency.sum(1)
    right = (adjacency @ degree + degree) / (degree + 1)
    seen[name] = np.asarray(compute_avg_adj_deg(graphs.Graph(adjacency))).ravel()
    print(f'{name}: average of the degrees {right[:3].round(2)}, seen {seen[name][:3].round(2)}')
    assert not np.any(np.isclose(seen[name], right)), 'this has changed'
assert np.allclose(seen['star'], [1 / 6] + [5 / 2] * 5), 'this has changed'
assert np.allclose(seen['complete 4'], 1) and np.allclose(seen['complete 20'], 1), 'this has changed'
PY
