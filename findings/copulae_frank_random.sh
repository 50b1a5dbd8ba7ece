#!/usr/bin/env bash
# copulae 0.8.0: random samples of the Frank copula in three dimensions have the wrong dependence, or are not a number.
#
# Expected: random of FrankCopula(theta, 3) draws a logarithmic series variable V with p = 1 - exp(-theta) per row, and values
# psi(-log(u) / V). V is a positive integer. Each pair of columns then has Kendall's tau of the property tau, and each column
# is uniform between 0 and 1.
# Seen: for theta > 3, the generator of V returns remainders u of the search instead of the integer x that it counts. For theta
# up to 3, it has log(u / log(q)) instead of log(u) / log(q), which is the logarithm of a negative number. So for theta = 8,
# tau of samples is not 0.6, and the columns are not uniform. For theta = 3, about half of all values are not a number.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet copulae==0.8.0 numpy==2.2.6 scipy==1.16.3 pandas==2.3.3 scikit-learn==1.7.2 \
    statsmodels==0.14.6 wrapt==1.17.3
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import numpy as np
from copulae import FrankCopula
from scipy.stats import kendalltau

print(f'copulae {version("copulae")}')
np.random.seed(0)


def by_definition(theta, size):
    generator = np.random.default_rng(1)
    series = generator.logseries(-np.expm1(-theta), size)[:, None]
    s = -np.log(generator.random((size, 3))) / series
    return -np.log1p(np.exp(-s) * np.expm1(-theta)) / theta


for theta in (1.0, 3.0, 5.0, 8.0):
    copula = FrankCopula(theta, 3)
    sample, right = np.asarray(copula.random(20000, seed=1)), by_definition(theta, 20000)
    missing, means = np.isnan(sample).mean(), np.nanmean(sample, axis=0)
    taus = [kendalltau(x[:, 0], x[:, 1], nan_policy='omit')[0] for x in (sample, right)]
    print(f'theta {theta}: {missing:.3f} of values are not a number. The others have means {means.round(3)} and tau '
          f'{taus[0]:.3f}. By the definition, means {right.mean(0).round(3)} and tau {taus[1]:.3f}')  # fmt: skip
    assert abs(right.mean() - 0.5) < 0.01
    assert abs(taus[1] - FrankCopula(theta, 2).tau) < 0.02
    assert missing > 0.1 if theta <= 3 else (missing == 0 and abs(taus[0] - taus[1]) > 0.1), 'this has changed'
PY
