#!/usr/bin/env bash
# scikit-network 0.33.5: get_shortest_path(force_bipartite=True) transposes the matrix instead.
#
# Expected: "If True, consider the input matrix as the biadjacency matrix of a bipartite graph", and "set to True if the parameters
# source_row or source_col are specified". So naming it beside source_row changes nothing, as in get_distances.
# Seen: the option is passed on to get_distances by position, where transpose has its place. With source_row=0, the paths are those of
# the transposed matrix: column 1 is said to be reached from row 1 only, though row 0 is joined to it. With source=0, a square
# matrix is not taken for a bipartite graph at all. A column beyond the number of rows raises an IndexError.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet scikit-network==0.33.5 networkx==3.6.1 numpy==2.4.6 scipy==1.17.1
"$folder/venv/bin/python" -W error - <<'PY'
from importlib.metadata import version

import numpy as np
from scipy.sparse import csr_matrix
from sknetwork.path import get_distances, get_shortest_path

print(f'scikit-network {version("scikit-network")}')
square, wide = csr_matrix([[1, 1, 0], [0, 1, 0], [0, 0, 1]]), csr_matrix([[1, 1, 0], [0, 1, 1]])


def edges(matrix, **options):
    try:
        path = get_shortest_path(matrix, **options)
    except IndexError as error:
        return type(error).__name__
    names = [f'row {i}' for i in range(matrix.shape[0])] + [f'column {j}' for j in range(matrix.shape[1])]
    return path.shape, [f'{names[i]} -> {names[j]}' for i, j in np.argwhere(path.toarray())]


distances = [get_distances(square, source_row=0, force_bipartite=force) for force in (False, True)]
assert all(np.array_equal(one, other) for one, other in zip(*distances)), 'this has changed'
cases = [(square, dict(source_row=0)), (square, dict(source=0)), (wide, dict(source_col=2))]
seen = []
for matrix, options in cases:
    seen.append((edges(matrix, **options), edges(matrix, **options, force_bipartite=True)))
    print(f'{matrix.shape}, {options}: {seen[-1][0]}\n    with force_bipartite=True: {seen[-1][1]}')
assert seen[0][0][1] == ['row 0 -> column 0', 'row 0 -> column 1', 'column 1 -> row 1'], 'this has changed'
assert 'row 1 -> column 1' in seen[0][1][1] and 'column 1 -> row 1' not in seen[0][1][1], 'this has changed'
assert seen[1][1][0] == (3, 3) and seen[2][0] != 'IndexError' and seen[2][1] == 'IndexError', 'this has changed'
PY
