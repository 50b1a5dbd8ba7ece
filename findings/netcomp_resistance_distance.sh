#!/usr/bin/env bash
# NetComp 0.2.3: resistance_distance sums the entries of a product of matrices instead of powers of the entries.
#
# Expected: "Function returns the p-norm of the flattened matrices", that is of the difference of the two resistance matrices,
# with p = 2 by default. It is a norm, so that it is positive, and grows with each entry's size.
# Seen: the difference is a np.matrix, for which ** p is the power of the matrix. For p = 2, the entries of the square of the
# matrix are summed. For p = 1, the entries are summed with their signs, so that the distance can be negative, and that of a to
# b is minus that of b to a. NetComp asks for NetworkX 1, which does not run on current Python. The functions here run with
# NetworkX 2.8.8.
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


def resistances(adjacency):
    inverse = np.linalg.pinv(np.diag(adjacency.sum(1)) - adjacency)
    diagonal = np.diag(inverse)
    return diagonal[:, None] + diagonal - 2 * inverse


for a, b in ((first, second), (second, first), (first, third)):
    difference = resistances(a) - resistances(b)
    for p in (1, 2):
        seen, right = float(netcomp.resistance_distance(a, b, p=p)), (np.abs(difference) ** p).sum() ** (1 / p)
        print(f'p = {p}: {seen:.4f}, by the definition {right:.4f}')
        assert np.isclose(seen, np.linalg.matrix_power(difference, p).sum() ** (1 / p)), 'this has changed'
        assert abs(seen - right) > 0.1, 'this has changed'
PY
