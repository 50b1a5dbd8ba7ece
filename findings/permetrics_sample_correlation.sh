#!/usr/bin/env bash
# permetrics 2.1.0: correlation with sample=True multiplies the correlation by n / (n - 1), so that it exceeds 1.
#
# Expected: "Correlation (COR)" with "range": "[-1, 1]", and sample is "sample covariance or population covariance". The sample
# correlation is the sample covariance over the product of the sample standard deviations. n - 1 cancels, so that sample and
# population correlation are equal, and it is 1 for a perfect prediction.
# Seen: the covariance is divided by n - 1, but both standard deviations by n. A perfect prediction of 5 values has the
# correlation 1.25.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet permetrics==2.1.0 numpy==2.4.6 scipy==1.17.1
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import numpy as np
from permetrics import RegressionMetric

print(f'permetrics {version("permetrics")}')
assert RegressionMetric.get_support('COR', verbose=False)['range'] == '[-1, 1]'
rng = np.random.default_rng(0)
for size in (5, 20):
    y_true = rng.normal(size=size)
    for name, y_pred in (('perfect', y_true), ('reversed', -y_true), ('noisy', y_true + rng.normal(size=size))):
        metric = RegressionMetric(y_true=y_true, y_pred=y_pred)
        population, sample = metric.correlation(sample=False), metric.correlation(sample=True)
        a, b = y_true - y_true.mean(), y_pred - y_pred.mean()
        right = np.sum(a * b) / (size - 1) / np.sqrt(np.sum(a**2) / (size - 1) * np.sum(b**2) / (size - 1))
        print(f'{size} values, {name}: sample=False {population:.4f}, sample=True {sample:.4f}, by the definition {right:.4f}')
        assert np.isclose(population, right) and np.isclose(right, np.corrcoef(y_true, y_pred)[0, 1])
        assert np.isclose(sample, right * size / (size - 1)), 'this has changed'
PY
