#!/usr/bin/env bash
# hypergraphx 1.8.0: are_commuting says that a matrix does not commute with itself, and that others do.
#
# Expected: are_commuting(laplacian_matrices) is true if all products of two of the matrices are the same in both orders. Laplacians that
# commute have common eigenvectors.
# Seen: the test is inverted: "do not commute" is returned if the difference of both products is zero. That is for dense matrices. The
# matrices of the own function laplacian_matrices_all_orders are sparse, and raise an AttributeError, since these have no method any.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet hypergraphx==1.8.0 numpy==1.26.4 scipy==1.13.1 networkx==3.6.1
"$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import numpy as np
from hypergraphx import Hypergraph
from hypergraphx.linalg import are_commuting, laplacian_matrices_all_orders

print(f'hypergraphx {version("hypergraphx")}')
laplacians = laplacian_matrices_all_orders(Hypergraph([(0, 1, 2), (1, 2, 3), (0, 1)]))
first, second = (laplacians[order].toarray() for order in (1, 2))
for name, pair in (('the same matrix twice', [first, first]), ('the Laplacians of two orders', [first, second])):
    difference = np.abs(pair[0] @ pair[1] - pair[1] @ pair[0]).max()
    seen = are_commuting(pair)
    print(f'{name}: are_commuting is {seen}, the products differ by {difference}')
    assert seen == (difference > 0), 'this has changed'
try:
    message = str(are_commuting(list(laplacians.values())))
except AttributeError as error:
    message = f'AttributeError: {error}'
print(f'as the package returns them: {message}')
assert message.startswith('AttributeError'), 'this has changed'
PY
