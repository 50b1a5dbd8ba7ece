#!/usr/bin/env bash
# phylotreelib 2.3.1: the path difference of an unrooted tree to itself is not 0, as edges at a root of three are lost.
#
# Expected: pathdist_dict is "path-distance (number of edges) for all pairs of leaves". treedist_pathdiff is the "Euclidean
# distance between nodepath-dist matrices", as in Steel and Penny (1993). "rooted=True: count traversal of root as 2 steps (not
# 1)". With rooted=False, a root of two branches is no node of the unrooted tree, so that its children are 1 edge apart. A root
# of three branches, which is how an unrooted tree is written, is an inner node, so that its children are 2 edges apart.
# Seen: with rooted=False, which is the default, all children of the root are 1 edge apart, for any number of them. Leaves A
# and B of "(A,B,(C,D));" are at distance 1, as if a single edge joined them. The same unrooted tree, written from two of its
# inner nodes, is at a distance above 0 to itself. Its Robinson-Foulds distance is 0.
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
from phylotreelib import Tree

print(f'phylotreelib {version("phylotreelib")}')
# One unrooted tree with inner edges w-x and x-y: A and B at w, E at x, C and D at y.
edges = [('A', 'w'), ('B', 'w'), ('w', 'x'), ('E', 'x'), ('x', 'y'), ('C', 'y'), ('D', 'y')]
nodes = sorted({name for edge in edges for name in edge})
hops = np.full((8, 8), np.inf)
np.fill_diagonal(hops, 0)
for first, second in edges:
    i, j = nodes.index(first), nodes.index(second)
    hops[i, j] = hops[j, i] = 1
for k in range(8):
    hops = np.minimum(hops, hops[:, k : k + 1] + hops[k])
pairs = list(combinations('ABCDE', 2))
right = np.array([hops[nodes.index(i), nodes.index(j)] for i, j in pairs])

written = {
    'root w': '(A:1,B:1,((C:1,D:1):1,E:1):1);',
    'root x': '((A:1,B:1):1,E:1,(C:1,D:1):1);',
    'root on the edge x-y': '(((A:1,B:1):1,E:1):0.5,(C:1,D:1):0.5);',
}
trees = {name: Tree.from_string(text) for name, text in written.items()}
for name, tree in trees.items():
    seen = np.array([tree.pathdist_dict()[i][j] for i, j in pairs])
    print(f'{name}: numbers of edges {seen}, by counting {right.astype(int)}')
    assert np.allclose(seen, right) == (name == 'root on the edge x-y'), 'this has changed'
    assert np.all(seen <= right)
for first, second in combinations(trees, 2):
    seen, other = (getattr(trees[first], f'treedist_{kind}')(trees[second]) for kind in ('pathdiff', 'RF'))
    print(f'{first} and {second}: path difference {seen:.3f}, Robinson-Foulds {other}, right are 0 and 0')
    assert seen > 1 and other == 0, 'this has changed'
PY
