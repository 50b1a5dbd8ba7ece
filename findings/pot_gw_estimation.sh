#!/usr/bin/env bash
# POT 0.9.7.post1: GW_distance_estimation is biased, if the nodes do not have equal weights.
#
# Expected: it "gives an unbiased approximation" of the sum of L(C1_ik, C2_jl) T_ij T_kl, says the documentation: the mean of many estimates
# is this sum.
# Seen: rows of the plan are drawn without replacement, and their mean is taken with equal weights. By default, for a plan that is not
# sparse, as many rows are drawn as there are. This is each row once: the weights of the rows have no effect, however many columns are drawn
# for each. The mean of many estimates is the sum for the plan with equal rows. With one row each it is unbiased. The estimates of
# pointwise_gromov_wasserstein and the standard deviation come from this function. The standard deviation does not show it.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet POT==0.9.7.post1 numpy==2.4.6 scipy==1.17.1
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import numpy as np
import ot

print(f'POT {version("POT")}')
rng = np.random.default_rng(0)
x, y = rng.normal(size=(8, 2)), rng.normal(size=(6, 2))
x[0] = 3
C1, C2 = ot.dist(x, x, 'euclidean'), ot.dist(y, y, 'euclidean')


def square(a, b):
    return (a - b) ** 2


def exact(T):
    return np.einsum('ikjl,ij,kl->', square(C1[:, :, None, None], C2), T, T)


def estimates(p, q, T, number, **options):
    return np.array([ot.gromov.GW_distance_estimation(C1, C2, p, q, square, T, random_state=i, **options) for i in range(number)])


q = np.full(6, 1 / 6)
for name, p in (('equal weights', np.full(8, 1 / 8)), ('half of the weight on node 0', np.r_[0.5, np.full(7, 0.5 / 7)])):
    T = np.outer(p, q)
    rows = np.outer(np.full(8, 1 / 8), q)  # Each row of the plan with the same weight.
    default = estimates(p, q, T, 500, std=False).mean()
    value, deviation = estimates(p, q, T, 20, nb_samples_q=2000).mean(0)
    single = estimates(p, q, T, 20_000, std=False, nb_samples_p=1).mean()
    print(f'{name}: mean of 500 estimates {default:.3f}, with 2000 columns of each row {value:.3f} (standard deviation said to be '
          f'{deviation:.3f}), with one row each {single:.3f}. The sum {exact(T):.3f}, with equal rows {exact(rows):.3f}')  # fmt: skip
    assert np.allclose([default, value], exact(rows), rtol=0.03) and np.isclose(single, exact(T), rtol=0.05), 'this has changed'
    assert np.isclose(exact(T), exact(rows)) == (name == 'equal weights'), 'this has changed'
assert abs(value / exact(T) - 1) > 0.3, 'this has changed'
PY
