#!/usr/bin/env bash
# permetrics 2.1.0: single_absolute_error is |y_true| - |y_pred|, which can be negative or 0 for a wrong prediction.
#
# Expected: the function "computes the absolute error between two numbers", and the package gives it "range": "[0, +inf)" and
# "best": "0". That is |y_true - y_pred|. Its mean is the mean absolute error of the same class.
# Seen: the absolute values of both are subtracted. Each prediction above a positive target has a negative error. A prediction
# of -3 for 3 has the error 0, which is best. The mean is not the mean absolute error.
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
rng = np.random.default_rng(0)
print('documented:', RegressionMetric.get_support('AE', verbose=False))
assert RegressionMetric.get_support('AE', verbose=False)['range'] == '[0, +inf)'
examples = {'above': ([3.0], [5.0]), 'opposite': ([3.0], [-3.0]), 'below': ([5.0], [3.0]), 'normal': rng.normal(size=(2, 50))}
for name, (y_true, y_pred) in examples.items():
    y_true, y_pred = np.array(y_true), np.array(y_pred)
    metric = RegressionMetric(y_true=y_true, y_pred=y_pred)
    seen, right = metric.single_absolute_error(), np.abs(y_true - y_pred)
    if len(y_true) == 1:
        print(f'{name}: y_true {y_true[0]}, y_pred {y_pred[0]}: absolute error {seen[0]}, by the definition {right[0]}')
    else:
        print(f'{name}: mean {seen.mean():.3f}, smallest {seen.min():.3f}, by the definition {right.mean():.3f} and '
              f'{right.min():.3f}, mean_absolute_error {metric.mean_absolute_error():.3f}')  # fmt: skip
        assert np.isclose(metric.mean_absolute_error(), right.mean())
    assert np.allclose(seen, np.abs(y_true) - np.abs(y_pred)), 'this has changed'
    assert np.allclose(seen, right) == (name == 'below'), 'this has changed'
PY
