#!/usr/bin/env bash
# clusim 0.4: the Pearson correlation of a clustering and itself is 0.004, and falls with the number of elements.
#
# Expected: pearson_correlation "calculates the Pearson Correlation between two clusterings", "between -1.0 and 1.0" (docstring). It is
# the correlation of the indicators of pairs of elements that are in one cluster, for which 1 says that they are equal.
# Seen: the formula, in clusim/sim.py and in the docstring, divides by the product of the four margins. The coefficient of correlation has
# the square root of this product, without which the value has the unit of one over pairs squared. Larger sets of elements have smaller
# values, and those of sets of different sizes can't be compared. corrected_chance of it depends on the size, too.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet clusim==0.4 numpy==2.4.6 scipy==1.17.1 mpmath==1.3.0 igraph==1.0.0
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version
from itertools import combinations

import numpy as np
from clusim.clustering import Clustering
from clusim.sim import pearson_correlation

print(f'clusim {version("clusim")}')


def correlation(first, other):
    pairs = list(combinations(range(len(first)), 2))
    together = [[labels[i] == labels[j] for i, j in pairs] for labels in (first, other)]
    return np.corrcoef(np.array(together, dtype=float))[0, 1], np.cov(np.array(together, dtype=float), bias=True), len(pairs)


for n in (9, 30, 90):
    first, other = [3 * i // n for i in range(n)], [2 * i // n for i in range(n)]
    a, b = (Clustering(elm2clu_dict={i: [label] for i, label in enumerate(labels)}) for labels in (first, other))
    for name, pair, labels in (('of one and itself', (a, a), (first, first)), ('of both', (a, b), (first, other))):
        seen, (right, covariance, count) = float(pearson_correlation(*pair)), correlation(*labels)
        print(f'{n} elements, {name}: {seen:.2e}, correlation of the indicators {right:.4f}')
        product = covariance[0, 1] / (covariance[0, 0] * covariance[1, 1]) / count**2
        assert np.isclose(seen, product) and seen < right / 100, 'this has changed'
        assert pair[0] is not pair[1] or np.isclose(right, 1), 'the definition is wrong'
PY
