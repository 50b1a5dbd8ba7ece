#!/usr/bin/env bash
# networkit 11.3: the Katz index of two nodes depends on the pair that was asked before.
#
# Expected: the index of Katz is the sum of damping^k times the number of walks of length k. run(u, v) of the same object, graph
# and pair has one value, and run(u, v) equals run(v, u) in an undirected graph.
# Seen: walks are counted from one end, and those that return to it are left out, so the count differs between the two ends. The object
# keeps the counts of the last query, and uses them if a pair has this node as either end. On a path of four nodes, the pair of
# nodes 0 and 1 has two walks of length 3, or one if (1, 2) was asked before, and the pair in the middle two instead of three.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet networkit==11.3 numpy==2.4.6 scipy==1.17.1
"$folder/venv/bin/python" - <<'PY'
import networkit as nk
import numpy as np

print(f'networkit {nk.__version__}')
path = nk.Graph(4)
for node in range(3):
    path.addEdge(node, node + 1)
adjacency, damping = np.diag(np.ones(3), 1) + np.diag(np.ones(3), -1), 0.1
walks = [np.linalg.matrix_power(adjacency, k) for k in (1, 2, 3)]
right = sum(damping ** (k + 1) * count for k, count in enumerate(walks))


def index():
    return nk.linkprediction.KatzIndex(path, 3, damping)


seen = {}
for pair in ((0, 1), (1, 0), (1, 2)):
    after = {}
    for before in ((0, 3), (1, 2), (2, 1)):
        used = index()
        used.run(*before)
        after[before] = round(used.run(*pair), 6)
    seen[pair] = round(right[pair], 6), round(index().run(*pair), 6), *after.values()
    print(f'{pair}: with all walks {seen[pair][0]}, asked first {seen[pair][1]}, asked after {after}')
assert seen[0, 1] == seen[1, 0] == (0.102, 0.102, 0.102, 0.101, 0.102), 'this has changed'
assert seen[1, 2] == (0.103, 0.102, 0.102, 0.102, 0.102), 'this has changed'
PY
