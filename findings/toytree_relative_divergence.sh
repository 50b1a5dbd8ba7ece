#!/usr/bin/env bash
# toytree 3.0.11: the relative evolutionary divergence leaves out one node of each tree.
#
# Expected: get_relative_evolutionary_divergence returns "a dict mapping Node idx to relative evolutionary divergence" (RED),
# "such that the root has a RED of 0 and the leafs have a RED of 1". Of a node, it is that of its parent, p, plus (1 - p) * a /
# (a + b), for the length a of its edge and the mean distance b to its leaves.
# Seen: the loop over inner nodes is tree[-2:tree.ntips:-1], which ends before its stop. The first inner node, of the index
# ntips, is never visited: it has no key, and with inplace=True its feature RED is NaN.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet toytree==3.0.11 numpy==2.4.6 scipy==1.17.1 pandas==3.1.1
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import numpy as np
import toytree

print(f'toytree {version("toytree")}')


def by_definition(tree):
    def leaf_distances(node):
        return [d + child.dist for child in node.children for d in leaf_distances(child)] if node.children else [0]

    def visit(node, value):
        found[node.idx] = value
        for child in node.children:
            b = np.mean(leaf_distances(child))
            visit(child, value + (1 - value) * child.dist / (child.dist + b))

    found = {}
    visit(tree.treenode, 0.0)
    return found


trees = {'((a:1,b:2):3,((c:1,d:1):1.5,e:4):0.5);': toytree.tree('((a:1,b:2):3,((c:1,d:1):1.5,e:4):0.5);')}
trees |= {f'a random tree of {n} tips': toytree.rtree.rtree(n, seed=0) for n in (6, 20)}
for name, tree in trees.items():
    seen, right = toytree.pcm.get_relative_evolutionary_divergence(tree), by_definition(tree)
    missing = sorted(set(right) - set(seen))
    print(f'{name}: {tree.nnodes} nodes, {len(seen)} values, none for {missing}, where {right[tree.ntips]:.4f} is right')
    assert missing == [tree.ntips] and all(np.isclose(seen[idx], right[idx]) for idx in seen), 'this has changed'
    feature = toytree.pcm.get_relative_evolutionary_divergence(tree, inplace=True).get_node_data('RED', missing=np.nan)
    print(f'  inplace: {feature.isna().sum()} NaN, of node {feature.index[feature.isna()].tolist()}')
    assert feature.index[feature.isna()].tolist() == missing, 'this has changed'
PY
