#!/usr/bin/env bash
# uncertainty-toolbox 0.1.1: the observed proportions below predicted quantiles have the sign of the residuals reversed.
#
# Expected: with prop_type 'quantile', get_proportion_lists gives "observed proportions below a predicted quantile". The
# quantile of q is y_pred + y_std z_q. A value is below it if (y_true - y_pred) / y_std <= z_q.
# Seen: the residuals are y_pred - y_true. The result is the proportion above the quantile of 1 - q. For predictions that are
# too low, the curve lies above the diagonal instead of below. A recalibration by iso_recal moves the quantiles away from the
# data: get_quantile of 0.9 then has a fifth of the data below. get_proportion_lists_vectorized and
# get_proportion_under_quantile share it.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet uncertainty-toolbox==0.1.1 numpy==2.4.6 scipy==1.17.1 scikit-learn==1.7.2 \
  matplotlib==3.11.2 tqdm==4.70.1
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import numpy as np
import uncertainty_toolbox
from scipy.stats import norm
from uncertainty_toolbox.metrics_calibration import get_proportion_under_quantile, get_quantile

print(f'uncertainty-toolbox {version("uncertainty-toolbox")}')
rng = np.random.default_rng(0)
n = 5000
predicted, std, true = np.zeros(n), np.ones(n), rng.normal(1, 1, n)
expected, seen = uncertainty_toolbox.get_proportion_lists(predicted, std, true, num_bins=101, prop_type='quantile')
vectorized = uncertainty_toolbox.get_proportion_lists_vectorized(predicted, std, true, num_bins=101, prop_type='quantile')[1]
right = np.array([np.mean(true <= predicted + std * norm.ppf(q)) for q in expected])
seen = np.array(seen)
print(f'levels {expected[::10].round(1)}')
print(f'observed proportions {seen[::10].round(2)}')
print(f'by the definition    {right[::10].round(2)}')
assert np.allclose(seen, vectorized) and np.allclose(seen, 1 - right[::-1]), 'this has changed'
assert np.isclose(get_proportion_under_quantile(predicted, std, true, 0.8), seen[80]), 'this has changed'
for name, proportions in (('observed', seen), ('by the definition', right)):
    model = uncertainty_toolbox.iso_recal(expected, proportions)
    quantile = get_quantile(predicted, std, 0.9, model)
    below = np.mean(true <= quantile)
    print(f'recalibrated with the proportions {name}: quantile of 0.9 at {quantile[0]:.3f}, with {below:.3f} of the data below')
    assert abs(below - 0.9) < 0.02 if name != 'observed' else below < 0.3, 'this has changed'
PY
