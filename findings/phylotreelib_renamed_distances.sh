#!/usr/bin/env bash
# phylotreelib 2.3.1: the neighbor-joining tree of a distance matrix has other leaves in wrong places after a rename.
#
# Expected: Distmatrix.rename "changes name of one item from oldname to newname". The distances stay, and getdist and the
# printed matrix show that. So the tree is the same, with one name changed.
# Seen: rename moves the name to the end of the list of names, and rows and columns stay where they are. nj takes the names in
# the order of the list. So the renamed row and those behind it are taken for other leaves. upgma looks names up by index, and
# is right.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet phylotreelib==2.3.1 numpy==2.4.6
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version
from itertools import combinations

import numpy as np
from phylotreelib import Distmatrix

print(f'phylotreelib {version("phylotreelib")}')
# Additive distances of a tree with edges A 1, B 2, C 1, D 3 and an inner edge 4. Neighbor joining finds this tree.
additive = np.array([[0, 3, 6, 8], [3, 0, 7, 9], [6, 7, 0, 4], [8, 9, 4, 0.0]])


def tree_distances(tree, names):
    return np.array([tree.nodedist(i, j) for i, j in combinations(names, 2)])


right = additive[np.triu_indices(4, 1)]
for renamed in (False, True):
    matrix = Distmatrix.from_numpy_array(additive.copy(), list('ABCD'))
    if renamed:
        matrix.rename('A', 'Z')
    names = 'ZBCD' if renamed else 'ABCD'
    kept = np.array([matrix.getdist(i, j) for i, j in combinations(names, 2)])
    tree = matrix.nj()
    seen = tree_distances(tree, names)
    print(f'renamed {renamed}: getdist {kept}, distances in the tree of nj {seen}, right are {right}')
    print(f'tree of nj {tree.newick()}')
    assert np.allclose(kept, right)
    assert np.allclose(seen, right) != renamed, 'this has changed'
    joined = matrix.upgma()
    assert np.isclose(joined.nodedist(names[0], 'B'), 3), 'this has changed'  # the nearest pair is joined first
PY
