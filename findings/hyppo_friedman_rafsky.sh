#!/usr/bin/env bash
# hyppo 0.5.2: the p-value of the Friedman-Rafsky test is of the wrong tail, so that well separated samples have a p-value of 1.
#
# Expected: the test cuts the edges of the minimum spanning tree between samples, and counts the trees that are left. Samples
# from different distributions are apart in the tree, so that few trees are left. Friedman and Rafsky (1979) reject for few, as
# Wald and Wolfowitz for few runs. The p-value is the part of permutations with as few trees or fewer.
# Seen: the permutation test counts permutations with as many trees or more. Two samples that are far apart, with the smallest
# number of trees of 2, have a p-value of 1. A regular mixture has a small one.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet hyppo==0.5.2 numpy==2.4.6 scipy==1.17.1 numba==0.68.1 llvmlite==0.50.0 \
    scikit-learn==1.9.1 autograd==1.9.1 statsmodels==0.15.0 patsy==1.0.3 pandas==3.1.1 future==1.0.0
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import numpy as np
from hyppo.ksample import FriedmanRafsky
from scipy.sparse.csgraph import minimum_spanning_tree
from scipy.spatial.distance import cdist

print(f'hyppo {version("hyppo")}')


def by_definition(points, labels, repetitions=1000):
    i, j = minimum_spanning_tree(cdist(points, points)).nonzero()
    generator = np.random.default_rng(0)
    trees = 1 + np.sum(labels[i] != labels[j])
    null = [1 + np.sum(other[i] != other[j]) for other in (generator.permutation(labels) for _ in range(repetitions))]
    null = np.array(null)
    return trees, *((1 + np.sum(tail)) / (1 + repetitions) for tail in (null <= trees, null >= trees))


rng = np.random.default_rng(0)
labels = np.repeat([0, 1], 20)
line = np.column_stack([np.arange(40.0), np.zeros(40)])
examples = {
    'far apart': (np.concatenate([rng.normal(size=(20, 2)), rng.normal(size=(20, 2)) + 8]), labels),
    'shifted': (np.concatenate([rng.normal(size=(20, 2)), rng.normal(size=(20, 2)) + 2.5]), labels),
    'alternating along a line': (line, np.tile([0, 1], 20)),
}
for name, (points, classes) in examples.items():
    seen = FriedmanRafsky().test(points, classes, reps=1000, random_state=1)
    trees, right, other = by_definition(points, classes)
    print(f'{name}: {seen.uncor_stat} trees, p-value {seen.pvalue:.4f}, by the definition {trees} and {right:.4f}')
    assert trees == seen.uncor_stat and abs(seen.pvalue - other) < 0.05, 'this has changed'
    if name == 'alternating along a line':
        assert right == 1 and seen.pvalue < 0.01, 'this has changed'
    else:
        assert right < 0.01 and seen.pvalue > 0.95, 'this has changed'
PY
