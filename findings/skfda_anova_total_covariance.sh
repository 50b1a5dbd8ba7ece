#!/usr/bin/env bash
# scikit-fda 0.10.1: oneway_anova estimates the common covariance of the groups from the differences of their means as well.
#
# Expected: the null distribution is that of Gaussian processes "with mean zero and the same covariance function as the
# original" samples. equal_var=True, the default, assumes "the same covariance operator for all the groups". The estimate of
# it is the pooled one, of deviations from the mean of the own group, with n - k degrees of freedom. For groups of equal size
# n, the mean of the null distribution is k (k - 1) times the integral of the covariance at (t, t).
# Seen: the covariance is that of all curves together, around their common mean. The larger the differences between the groups
# are, the larger is the simulated null distribution. So the p-value cannot get small for small groups: with 3 groups of 3
# curves, it stays at 0.02 however far the groups are apart. With equal_var=False, each group has its own mean, and the
# distribution is right.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet scikit-fda==0.10.1 multimethod==1.12 numpy==2.4.6 scipy==1.17.1 pandas==2.3.3 scikit-learn==1.9.1 \
    matplotlib==3.11.2 numba==0.68.1 fdasrsf==2.7.3 findiff==0.16.0 dcor==0.7 rdata==1.1.0 xarray==2026.9.0
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import numpy as np
from skfda import FDataGrid
from skfda.inference.anova import oneway_anova

print(f'scikit-fda {version("scikit-fda")}')
rng = np.random.default_rng(0)
t = np.linspace(0, 1, 30)
shapes = np.array([np.ones(30), np.sin(6 * t), np.cos(6 * t)])
curves = [rng.normal(size=(3, 3)) @ shapes for _ in range(3)]
for shift in (0, 1, 3, 10, 100):
    values = [group + k * shift for k, group in enumerate(curves)]
    groups = [FDataGrid(group, t) for group in values]
    seen = oneway_anova(*groups, return_dist=True, random_state=0)
    own = oneway_anova(*groups, return_dist=True, random_state=0, equal_var=False)
    right = 6 * np.trapezoid(sum(((group - group.mean(0)) ** 2).sum(0) for group in values) / (9 - 3), t)
    whole = 6 * np.trapezoid(np.concatenate(values).var(0, ddof=1), t)
    print(f'means {shift} apart: statistic {seen[0]:.1f}, p {seen[1]:.4f}, with equal_var=False {own[1]:.4f}. Mean of the null '
          f'distribution {seen[2].mean():.1f}, with equal_var=False {own[2].mean():.1f}, by the pooled covariance {right:.1f}, '
          f'by that of all curves {whole:.1f}')  # fmt: skip
    assert np.isclose(seen[2].mean(), whole, rtol=0.1) and np.isclose(own[2].mean(), right, rtol=0.1), 'this has changed'
    assert shift < 3 or (seen[2].mean() > 3 * right and seen[1] > 0.005 and own[1] == 0), 'this has changed'
PY
