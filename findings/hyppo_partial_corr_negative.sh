#!/usr/bin/env bash
# hyppo 0.5.2: the partial correlation is 0 whenever one of the variables has a negative correlation with the third.
#
# Expected: the documented equation of PartialCorr, r = (r_xy - r_xz r_yz) / sqrt((1 - r_xz^2) (1 - r_yz^2)). It is the
# correlation of the residuals of x and y after regression on z, for all signs. If z is replaced by -z, it does not change.
# Seen: "if cov_xz <= 0 or cov_yz <= 0: stat = 0". So with z, two variables can be strongly dependent, and with -z, the
# statistic is 0 and the p-value 0.5. For variables which depend on each other and not on z, it is 0 in most cases here.
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
from hyppo.conditional import PartialCorr

print(f'hyppo {version("hyppo")}')


def by_definition(x, y, z):
    design = np.column_stack([np.ones_like(z), z])
    residuals = [v - design @ np.linalg.lstsq(design, v, rcond=None)[0] for v in (x, y)]
    return np.corrcoef(*residuals)[0, 1]


rng = np.random.default_rng(0)
common, z = rng.normal(size=(2, 200))
x, y = z + common + 0.3 * rng.normal(size=200), z + common + 0.3 * rng.normal(size=200)
for name, third in (('z', z), ('-z', -z)):
    seen, right = PartialCorr().test(x, y, third), by_definition(x, y, third)
    print(f'given {name}: {seen.stat:.4f}, p-value {seen.pvalue:.2g}, by the definition {right:.4f}')
    assert right > 0.8 and np.isclose(seen.stat, right if name == 'z' else 0), 'this has changed'
    assert (seen.pvalue == 0.5) == (name == '-z'), 'this has changed'
zeros = 0
for _ in range(200):
    common, third = rng.normal(size=(2, 100))
    a, b = common + 0.3 * rng.normal(size=100), -common + 0.3 * rng.normal(size=100)
    assert by_definition(a, b, third) < -0.8
    zeros += PartialCorr().statistic(a, b, third) == 0
print(f'strongly dependent variables unrelated to z: the statistic is 0 in {zeros} of 200 cases')
assert zeros > 150, 'this has changed'
PY
