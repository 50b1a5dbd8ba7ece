#!/usr/bin/env bash
# irrCAC 0.4.4: the p-value of the Brennan-Prediger coefficient of raw ratings is half of the right one.
#
# Expected: the result has a coefficient with a two-sided confidence interval at confidence_level and a p_value from the same t
# distribution with n - 1 degrees of freedom. The p-value is two-sided as of all other coefficients, 2 * (1 - cdf(|z|)). So the
# p-value is below 0.05 if and only if the interval at 95 % is without 0. The class for tables gives a two-sided value too.
# Seen: raw.CAC.bp returns 1 - cdf(|z|). A coefficient whose interval holds 0 has a p-value below 0.05.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet irrCAC==0.4.4 numpy==1.26.4 scipy==1.12.0 pandas==2.3.3
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import numpy as np
import pandas as pd
from irrCAC import raw, table
from scipy.stats import t

print(f'irrCAC {version("irrCAC")}')
n = 30
first = np.arange(n) % 3
second = np.where(np.arange(n) < 15, first, (first + 1 + np.arange(n) // 3 % 2) % 3)
ratings = pd.DataFrame({'first': first, 'second': second})

agreement = (first == second).mean()
coefficient = (agreement - 1 / 3) / (1 - 1 / 3)
error = np.sqrt(agreement * (1 - agreement) / (n - 1)) / (1 - 1 / 3)
for name, estimate, one_sided in (
    ('raw ratings, Brennan-Prediger', raw.CAC(ratings).bp()['est'], True),
    ('raw ratings, Fleiss', raw.CAC(ratings).fleiss()['est'], False),
    ('raw ratings, Gwet', raw.CAC(ratings).gwet()['est'], False),
    ('table, Brennan-Prediger', table.CAC(pd.crosstab(first, second)).bp()['est'], False),
):
    low, high = estimate['confidence_interval']
    right = 2 * t.sf(abs(estimate['z']), n - 1)
    print(f'{name}: {estimate["coefficient_value"]:.4f}, interval {low:.4f} to {high:.4f}, p-value {estimate["p_value"]:.4f}. '
          f'Two-sided {right:.4f}')  # fmt: skip
    assert np.isclose(estimate['p_value'], right / 2 if one_sided else right, atol=1e-5), 'this has changed'
    assert (right < 0.05) == (low > 0 or high < 0)
    assert ((estimate['p_value'] < 0.05) != (low > 0 or high < 0)) == one_sided, 'this has changed'
estimate = raw.CAC(ratings).bp()['est']
assert np.isclose(estimate['coefficient_value'], coefficient, atol=1e-5) and np.isclose(estimate['se'], error, atol=1e-5)
PY
