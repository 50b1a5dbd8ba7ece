#!/usr/bin/env bash
# dit 2.3: medians, quantiles and iqr of joint distributions are wrong for all variables but the first.
#
# Expected: quantile "for multi-dimensional distributions, operates on the marginal of each index independently". median and iqr
# are computed from it. So the median of a variable is that of its marginal distribution.
# Seen: the probabilities are summed in the order of the outcomes, and only then sorted by the values of the variable. This is
# right for the first variable, by which outcomes are sorted. For others, the sums are not ascending, so that a value of small
# probability may be the median. If all pairs of values occur, the second variable has its smallest value as the median and as
# both quartiles. cdf, which sums for each variable, is right.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet dit==2.3 numpy==2.4.6 scipy==1.17.1 networkx==3.6.1 pandas==3.1.1 xarray==2026.9.0 \
  boltons==26.2.0 debtcollector==3.1.0 lattices==0.5.1 loguru==0.7.3 PLTable==1.1.0
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version
from itertools import product

import numpy as np
from dit import Distribution
from dit.algorithms.stats import cdf, iqr, median, percentile, quantile

print(f'dit {version("dit")}')


def by_definition(values, p, q):  # the least value with P(X <= value) >= q, if no sum is q exactly
    order = np.argsort(values, kind='stable')
    return values[order][np.searchsorted(p[order].cumsum(), q)]


rng = np.random.default_rng(0)
pairs = np.array(list(product(range(6), range(6))))
cases = {'all pairs': (pairs, rng.dirichlet(np.ones(36)))}
cases['five pairs'] = (np.array([[0, 10], [1, 30], [2, 20], [3, 0], [4, 5]]), np.array([0.1, 0.35, 0.3, 0.15, 0.1]))
for name, (outcomes, p) in cases.items():
    joint = Distribution([tuple(map(int, o)) for o in outcomes], p)
    for q in (0.22, 0.5, 0.72, 0.88):
        right = np.array([by_definition(outcomes[:, k], p, q) for k in range(2)], float)
        seen = np.array(quantile(joint, q))
        marginals = np.array([quantile(joint.marginal([k]), q) for k in range(2)])
        print(f'{name}, q = {q}: {seen.tolist()}, of the marginals {marginals.tolist()}, by the definition {right.tolist()}')
        assert np.array_equal(marginals, right) and seen[0] == right[0], 'the definition is wrong'
        assert name != 'all pairs' or seen[1] < right[1], 'this has changed'
        assert np.array_equal(percentile(joint, 100 * q), seen), 'this has changed'
    print(f'    median {median(joint).tolist()}, interquartile range {iqr(joint).tolist()}')
    values, sums = cdf(joint)[1]
    median_of_cdf = values[np.searchsorted(sums, 0.5)]
    print(f'    median of the second variable by cdf: {median_of_cdf}')
    assert median_of_cdf == by_definition(outcomes[:, 1], p, 0.5) != median(joint)[1], 'this has changed'
    assert name != 'all pairs' or iqr(joint)[1] == 0, 'this has changed'
PY
