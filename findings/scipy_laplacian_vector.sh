#!/usr/bin/env bash
# SciPy 1.17.1: csgraph.laplacian(form="function") of a vector returns a matrix, and form="lo" has no product with a vector at all.
#
# Expected: "function" is documented as "evaluating the Laplacian-vector or Laplacian-matrix product", and "lo" as a LinearOperator.
# The product of the 3 x 3 Laplacian and a vector of length 3 is a vector of length 3.
# Seen: the degrees are a column, so that degree times vector becomes the outer product of both. The function returns a 3 x 3 matrix,
# without a word. The operator raises "cannot reshape array of size 9 into shape (3,)", and so do eigsh and cg,
# which multiply vectors. Only matrices, for example of one column, are right. All formats and options share this.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet scipy==1.17.1 numpy==2.4.6
"$folder/venv/bin/python" -W ignore - <<'PY'
import numpy as np
import scipy
from scipy.sparse import csr_array
from scipy.sparse.csgraph import laplacian
from scipy.sparse.linalg import cg, eigsh

adjacency = np.array([[0.0, 1, 0], [1, 0, 2], [0, 2, 0]])
x = np.array([1.0, 2, 4])
right = (np.diag(adjacency.sum(1)) - adjacency) @ x


def outcome(function):
    try:
        result = function()
    except ValueError as error:
        return str(error)
    return 'right' if result.shape == (3,) and np.allclose(result, right) else f'shape {result.shape}'


print(f'SciPy {scipy.__version__}, L x = {right}')
seen = {}
for name, graph in (('dense', adjacency), ('sparse', csr_array(adjacency))):
    function, operator = laplacian(graph, form='function'), laplacian(graph, form='lo')
    seen[name] = [
        outcome(lambda: laplacian(graph, form='array') @ x),
        outcome(lambda: function(x[:, None])[:, 0]),
        outcome(lambda: function(x)),
        outcome(lambda: operator @ x),
        outcome(lambda: eigsh(operator, k=1)[0]),
        outcome(lambda: cg(operator, x)[0]),
    ]
    print(f'{name}: array {seen[name][0]}, function of a column {seen[name][1]}, of a vector {seen[name][2]}')
    print(f'  operator: {seen[name][3]}; eigsh: {seen[name][4]}; cg: {seen[name][5]}')
refused = 'cannot reshape array of size 9 into shape (3,)'
assert list(seen.values()) == [['right', 'right', 'shape (3, 3)', refused, refused, refused]] * 2, 'this has changed'
PY
