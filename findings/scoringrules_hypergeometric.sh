#!/usr/bin/env bash
# scoringrules 0.10.0: crps_hypergeometric is too small, or 0, if there are fewer failures than successes in the population.
#
# Expected: the CRPS of the hypergeometric distribution, with m "success states in the population", n "failure states" and k
# draws. The number of successes drawn is at most m. The CRPS is the sum over x of (F(x) - 1[y <= x])^2.
# Seen: the sum goes over x from 0 to n, the number of failures. Larger numbers of successes are left out. With 13 successes, 4
# failures and 10 draws, at least 6 successes are drawn, so that all of them are left out. The score is 0, the best one, for any
# y.
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
from scipy.stats import hypergeom

print(f'scoringrules {version("scoringrules")}')
x = np.arange(40)
for m, n, k in ((7, 13, 12), (12, 6, 11), (13, 4, 10)):
    for y in (1, 5, 8):
        right = ((hypergeom(m + n, m, k).cdf(x) - (y <= x)) ** 2).sum()
        seen = float(scoringrules.crps_hypergeometric(y, m, n, k, backend='numpy'))
        print(f'{m} successes, {n} failures, {k} draws, y = {y}: CRPS {seen:.4f}, by the definition {right:.4f}')
        if m <= n:
            assert np.isclose(seen, right), 'this has changed'
        elif n == 4:
            assert seen == 0 and right > 0.2, 'this has changed'
        else:
            assert not np.isclose(seen, right, rtol=0.01), 'this has changed'
PY
