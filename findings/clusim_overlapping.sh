#!/usr/bin/env bash
# clusim 0.4: onmi and overlap_quality, the measures for overlapping clusterings, have other entropies than their definitions.
#
# Expected: onmi is the "overlapping normalized mutual information" of Lancichinetti, Fortunato and Kertesz (2009), which has for each
# pair of clusters the four shares of elements: in both, in one of them only (twice), and in neither. overlap_quality is that of Ahn et
# al. (2010), the mutual information of the numbers of clusters of the elements (docstrings, clusim.sim). It is at most the entropy of
# either, and zero for independent numbers.
# Seen: for onmi, clusim/sim.py takes all that is not in both clusters, 1 - P(both), for the share in neither. So the conditional
# entropies are wrong, and so is the condition by which clusters are compared at all. For overlap_quality, it adds the joint entropy,
# where the mutual information subtracts it: the value of two clusterings that have nothing to do with each other is the greatest.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet clusim==0.4 numpy==2.4.6 scipy==1.17.1 mpmath==1.3.0 igraph==1.0.0
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import numpy as np
from clusim.clustering import Clustering
from clusim.sim import onmi, overlap_quality

print(f'clusim {version("clusim")}')


def h(*shares):
    return -sum(p * np.log2(p) for p in shares if p > 0)


def half(first, other, n):
    total = 0
    for a in first:
        best = h(len(a) / n, 1 - len(a) / n)
        own = best
        for b in other:
            both, one, two = len(a & b) / n, len(a - b) / n, len(b - a) / n
            neither = 1 - both - one - two
            if h(both) + h(neither) > h(one) + h(two):
                best = min(best, h(both, one, two, neither) - h(len(b) / n, 1 - len(b) / n))
        total += best / own / len(first)
    return total


def definition(first, other, n):
    return 1 - (half(first, other, n) + half(other, first, n)) / 2


first = [{0, 1, 2, 3}, {3, 4, 5}, {6, 7}]
other = [{0, 1, 2}, {2, 3, 4, 5}, {5, 6, 7}]
clusterings = [Clustering(clu2elm_dict={i: sorted(c) for i, c in enumerate(clusters)}) for clusters in (first, other)]
seen, right = onmi(*clusterings), definition(first, other, 8)
print(f'onmi: {seen:.4f}, by the definition {right:.4f}. Of the first and itself {onmi(clusterings[0], clusterings[0]):.4f}')
assert np.isclose(seen, 0.64683, atol=1e-4) and np.isclose(right, 0.55205, atol=1e-4), 'this has changed'

# Elements in one or two clusters: the numbers are the same in both clusterings, or independent.
twice = {'the same': ([1, 1, 2, 2], [1, 1, 2, 2]), 'independent': ([1, 1, 2, 2], [1, 2, 1, 2])}
values = {}
for name, (left, right_numbers) in twice.items():
    pair = [Clustering(elm2clu_dict={i: list(range(k)) for i, k in enumerate(numbers)}) for numbers in (left, right_numbers)]
    joint = [np.mean([(a, b) == x for a, b in zip(left, right_numbers)]) for x in ((1, 1), (1, 2), (2, 1), (2, 2))]
    information = h(0.5, 0.5) + h(0.5, 0.5) - h(*joint)
    values[name] = float(overlap_quality(*pair)), float(information)
    print(f'numbers of clusters {name}: overlap_quality {values[name][0]:.1f}, mutual information {values[name][1]:.1f}')
assert values == {'the same': (3.0, 1.0), 'independent': (4.0, 0.0)}, 'this has changed'
PY
