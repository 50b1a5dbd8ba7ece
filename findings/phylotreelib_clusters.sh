#!/usr/bin/env bash
# phylotreelib 2.3.1: cluster_n loses leaves, and cluster_cut puts leaves in two clusters, if a node lies at the cut.
#
# Expected: cluster_n "divides tree into 'nclust' clusters based on distance from root". It returns "sets of leafnames (one set
# per cluster)". "Leafs that are upstream of cutpoint (closer to root) also form clusters of their own". cluster_cut "divides
# tree into clusters by cutting across tree". So each leaf is in one cluster, or in the returned set of unclassified leaves.
# Seen: cluster_n cuts at the distance of an inner node. A leaf at exactly this distance is neither below nor above it, and is
# in no cluster. cluster_cut takes both the branch that ends at the cut and those that start there. So the leaves of a node at
# the cut are a cluster, and its children are further clusters of the same leaves. With branch lengths of 1, both are common.
# numberprune, which keeps one leaf per cluster, so keeps fewer leaves than asked for.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet phylotreelib==2.3.1 numpy==2.4.6
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

from phylotreelib import Tree

print(f'phylotreelib {version("phylotreelib")}')


def show(clusters):
    return sorted(''.join(sorted(cluster)) for cluster in clusters)


for text, asked, right in (
    ('((A:1,B:1):1.1,C:1);', 3, ['A', 'B', 'C']),
    ('((A:1,B:1):1,C:1);', 3, ['A', 'B', 'C']),
    ('(((A:1,B:1):1,(C:1,D:1):1):1,E:2,F:4);', 6, ['A', 'B', 'C', 'D', 'E', 'F']),
):
    tree = Tree.from_string(text)
    seen = show(tree.cluster_n(asked)[0])
    kept = tree.numberprune(asked, return_leaves=True)
    print(f'{text}: cluster_n({asked}) {seen}, right are {right}. numberprune({asked}) keeps {len(kept)} leaves')
    lost = sorted(set(right) - set(seen))
    assert lost == ([] if '1.1' in text else ['C'] if asked == 3 else ['E']), 'this has changed'
    assert len(kept) == asked - len(lost), 'this has changed'

tree = Tree.from_string('((A:1,B:1):1,C:2);')
for cut, right in ((0.9, (['AB', 'C'],)), (1.0, (['AB', 'C'], ['A', 'B', 'C'])), (1.1, (['A', 'B', 'C'],))):
    clusters, _, rest = tree.cluster_cut(cut)
    seen = show(clusters)
    print(f'((A:1,B:1):1,C:2); cluster_cut({cut}): {seen}, right is {" or ".join(map(str, right))}')
    assert not rest and (seen in right) == (cut != 1), 'this has changed'
    assert sum(map(len, clusters)) == (5 if cut == 1 else 3), 'this has changed'
PY
