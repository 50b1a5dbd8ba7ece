#!/usr/bin/env bash
# scoringrules 0.10.0: error_spread_score leaves out the factor M in the skewness of an ensemble of M members.
#
# Expected: the score of Christensen et al. (2015), which is cited: (s^2 - e^2 - e s g)^2, with the error e of the mean, the
# standard deviation s, and the skewness g = M / ((M - 1) (M - 2)) times the sum of ((x - m) / s)^3. This is the adjusted
# skewness of samples.
# Seen: g has no factor M, so that it is M times too small. With many members, the skewness does not count. The score that the
# paper introduced for skewed forecasts ranks them as those without skewness.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet scoringrules==0.10.0 numpy==2.4.6 scipy==1.17.1
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import numpy as np
import scoringrules
from scipy.stats import skew

print(f'scoringrules {version("scoringrules")}')
rng = np.random.default_rng(0)
for members in (5, 50, 1000):
    forecast, observed = rng.exponential(size=(400, members)), rng.exponential(size=400)
    error, s = forecast.mean(1) - observed, forecast.std(1, ddof=1)
    g = members / ((members - 1) * (members - 2)) * (((forecast - forecast.mean(1, keepdims=True)) / s[:, None]) ** 3).sum(1)
    assert np.allclose(g, skew(forecast, axis=1, bias=False) * (np.std(forecast, axis=1, ddof=1) / s) ** 3)
    right = (s**2 - error**2 - error * s * g) ** 2
    seen = scoringrules.error_spread_score(observed, forecast, backend='numpy')
    print(f'{members} members, mean skewness {g.mean():.3f}: score {seen.mean():.3f}, by the definition {right.mean():.3f}')
    assert np.allclose(seen, (s**2 - error**2 - error * s * g / members) ** 2), 'this has changed'
    assert not np.allclose(seen, right, rtol=0.05)
PY
