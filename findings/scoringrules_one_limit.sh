#!/usr/bin/env bash
# scoringrules 0.10.0: the CRPS of a logistic distribution that is truncated or censored at one side only is NaN.
#
# Expected: crps_tlogistic, crps_clogistic and crps_gtclogistic document that lower is -inf and upper is inf by default. So a
# forecast of a quantity which is not negative has lower=0 alone. The normal and t functions with one limit are right.
# Seen: one infinite limit makes the terms of the other limit NaN. So all scores with one limit are NaN. No message appears, and
# a mean over forecasts that skips NaN leaves these out. Without any limit, the scores are right.
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
from scipy.stats import logistic, norm

print(f'scoringrules {version("scoringrules")}')
grid = np.linspace(-40, 60, 2000001)
observed = np.array([0.4, 1.5, 4.0])


def by_definition(base, lower, truncated):
    cdf = base.cdf(grid)
    if truncated:
        cdf = (cdf - base.cdf(lower)) / (1 - base.cdf(lower))
    cdf = np.where(grid < lower, 0, cdf)
    return np.array([np.trapezoid((cdf - (grid >= y)) ** 2, grid) for y in observed])


for name, base in (('logistic', logistic(0.2, 0.7)), ('normal', norm(0.2, 0.7))):
    for letter, word in (('t', 'truncated'), ('c', 'censored')):
        function = getattr(scoringrules, f'crps_{letter}{name}')
        for lower in (0.0, -np.inf):
            seen = function(observed, 0.2, 0.7, lower=lower, backend='numpy')
            right = by_definition(base, lower, letter == 't')
            print(f'{name}, {word} below {lower}: {np.round(seen, 4)}, by the definition {right.round(4)}')
            if name == 'normal' or lower == -np.inf:
                assert np.allclose(seen, right, atol=1e-3), 'this has changed'
            else:
                assert np.isnan(seen).all() and (right > 0).all(), 'this has changed'
PY
