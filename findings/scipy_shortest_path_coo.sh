#!/usr/bin/env bash
# SciPy 1.17.1: whether shortest_path accepts a graph in the format COO depends on its number of edges.
#
# Expected: the documentation accepts any "sparse array or matrix", and the default method "auto" only chooses the algorithm.
# Seen: a sparse graph goes to Dijkstra's algorithm, which converts any format. A dense one goes to Floyd-Warshall, which accepts
# CSR, CSC and LIL, and raises "csgraph must be lil, csr, or csc format" for COO, DIA, BSR and DOK. A program that passes COO, the
# format in which edge lists come, works until a user brings a small or dense graph.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet scipy==1.17.1 numpy==2.4.6
"$folder/venv/bin/python" - <<'PY'
import numpy as np
import scipy
from scipy.sparse import coo_array
from scipy.sparse.csgraph import dijkstra, floyd_warshall, shortest_path


def cycle(size, reach):
    row = np.repeat(np.arange(size), reach)
    col = (row + np.tile(np.arange(1, reach + 1), size)) % size
    return coo_array((np.ones(row.size), (row, col)), shape=(size, size))


def accepts(function, graph):
    try:
        result = function(graph)
    except ValueError as error:
        return str(error)
    return np.array_equal(result, dijkstra(graph.tocsr()))


seen = {
    'auto, 30 nodes, 60 edges, coo': accepts(shortest_path, cycle(30, 2)),
    'auto, 30 nodes, 450 edges, coo': accepts(shortest_path, cycle(30, 15)),
    'auto, 30 nodes, 450 edges, csr': accepts(shortest_path, cycle(30, 15).tocsr()),
    'dijkstra, 450 edges, coo': accepts(dijkstra, cycle(30, 15)),
    'floyd_warshall, 60 edges, coo': accepts(floyd_warshall, cycle(30, 2)),
}
print(f'scipy {scipy.__version__}')
for case, result in seen.items():
    print(f'{case}: {"works" if result is True else result}')
refused = 'csgraph must be lil, csr, or csc format'
assert list(seen.values()) == [True, refused, True, True, refused], 'this has changed'
PY
