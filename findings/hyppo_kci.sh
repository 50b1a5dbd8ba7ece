#!/usr/bin/env bash
# hyppo 0.5.2: KCI gives a p-value of 1 for weak and moderate dependence, as the null mean is of kernels that are not centered.
#
# Expected: "The p-value and null distribution for the corrected statistic are calculated a gamma distribution approximation",
# with the "approximate mean and variance of the trace values". In the cited paper of Zhang et al. (2011), the statistic tr(K
# L) of centered kernels has the mean tr(K) tr(L) / T and the variance 2 tr(K^2) tr(L^2) / T^2 of centered kernels, too.
# Independent data then have p-values between 0 and 1.
# Seen: the statistic is of centered kernels, and its mean and variance of those that are not centered. The mean is T, the
# number of samples, always. Statistics are much smaller, and the p-value is 1 to many digits, also for dependent variables.
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
from hyppo.conditional import KCI
from scipy.stats import gamma

print(f'hyppo {version("hyppo")}')


def p_value(kernels, statistic):
    count = len(kernels[0])
    mean = np.trace(kernels[0]) * np.trace(kernels[1]) / count
    variance = 2 * np.sum(kernels[0] ** 2) * np.sum(kernels[1] ** 2) / count**2
    return gamma.sf(statistic, mean**2 / variance, scale=variance / mean)


rng = np.random.default_rng(0)
rates = {}
for name, slope in (('independent', 0.0), ('y = 0.4 x + noise', 0.4), ('y = 4 x + noise', 4.0)):
    seen, right = [], []
    for _ in range(100):
        x, noise = rng.normal(size=(2, 100, 1))
        y = slope * x + noise
        result = KCI().test(x, y)
        plain = KCI().compute_kern(x, y)
        centering = np.eye(100) - 0.01
        centered = [centering @ kernel @ centering for kernel in plain]
        statistic = np.sum(centered[0] * centered[1])
        assert np.isclose(result.stat, statistic)
        assert np.isclose(np.trace(plain[0]) * np.trace(plain[1]) / 100, 100), 'this has changed'
        seen.append(result.pvalue)
        right.append(p_value(centered, statistic))
    rates[name] = np.mean(np.array(seen) < 0.05), np.mean(np.array(right) < 0.05), min(seen)
    print(f'{name}: p < 0.05 in {rates[name][0]:.2f} of cases, with centered kernels {rates[name][1]:.2f}. Smallest p-value '
          f'{min(seen):.6f} and {min(right):.6f}')  # fmt: skip
assert rates['independent'][2] > 0.999 and rates['y = 0.4 x + noise'][0] < 0.1, 'this has changed'
assert rates['independent'][1] < 0.15 and rates['y = 0.4 x + noise'][1] > 0.6
PY
