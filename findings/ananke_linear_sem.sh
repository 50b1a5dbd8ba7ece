#!/usr/bin/env bash
# ananke-causal 0.5.0: LinearGaussianSEM ignores the names of columns, and max_iters: the same data give another effect in another order.
#
# Expected: fit takes "a N x M dimensional pandas data frame", and total_effect the "variable names that act as treatments" and outcomes
# (docstrings, ananke.readthedocs.io/en/latest/ananke.models.html). The order of the columns of the data frame makes no difference. With
# max_iters, there are at most so many iterations.
# Seen: models/linear_gaussian_sem.py takes the values of the data frame without its names, as if the columns were in the order of the
# vertices of the graph. For A -> M -> Y with the coefficients 2 and 3, the effect of A on Y is 6. For the columns Y, A, M it is 0.3. There
# is no error or warning. The loop of fit goes on while the likelihood changes, or if the count is max_iters. It never stops for max_iters:
# with 0, 1, and 100 the results are the same.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet numpy==2.4.6 scipy==1.17.1 pandas==3.1.1 statsmodels==0.15.0 networkx==3.6.1 sympy==1.14.0 \
  torch==2.13.0 scikit-learn==1.9.1 opt_einsum==3.4.0 tqdm==4.70.1 joblib==1.6.0
"$folder/venv/bin/pip" install --quiet --no-deps ananke-causal==0.5.0 pgmpy==0.1.25
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
import itertools
from importlib.metadata import version

import numpy as np
import pandas as pd
from ananke.graphs import ADMG
from ananke.models import LinearGaussianSEM

print(f'ananke-causal {version("ananke-causal")}')
rng = np.random.default_rng(0)
n = 2000
a = rng.normal(size=n)
m = 2 * a + rng.normal(size=n)
y = 3 * m + rng.normal(size=n)
data = pd.DataFrame({'A': a, 'M': m, 'Y': y})
graph = ADMG(['A', 'M', 'Y'], di_edges=[('A', 'M'), ('M', 'Y')])


def slope(x, y):
    return np.cov(x, y)[0, 1] / np.var(x, ddof=1)


right = slope(a, m) * slope(m, y)
print(f'effect of A on Y by regressions: {right:.3f}')
for columns in itertools.permutations('AMY'):
    seen = LinearGaussianSEM(graph).fit(data[list(columns)]).total_effect(['A'], ['Y'])
    first, second, third = (data[name] for name in columns)
    other = slope(first, second) * slope(second, third)
    print(f'columns {", ".join(columns)}: {seen:.3f}, as if these were A, M, Y: {other:.3f}')
    assert np.isclose(seen, other) and np.isclose(seen, right) == (columns == ('A', 'M', 'Y')), 'this has changed'

hidden = ADMG(['A', 'M', 'Y'], di_edges=[('A', 'M'), ('M', 'Y')], bi_edges=[('M', 'Y')])
u = rng.normal(size=n)
data['M'] += u
data['Y'] += 3 * u
fits = {count: LinearGaussianSEM(hidden).fit(data, max_iters=count).B_ for count in (0, 1, 100)}
print(f'with M <-> Y, coefficient of M by max_iters: { {count: round(float(b[2, 1]), 4) for count, b in fits.items()} }')
once = LinearGaussianSEM(hidden).fit(data, tol=1e9).B_
print(f'coefficient after one iteration: {once[2, 1]:.4f}')
assert np.array_equal(fits[0], fits[1]) and np.array_equal(fits[1], fits[100]), 'this has changed'
assert abs(once[2, 1] - fits[1][2, 1]) > 0.05, 'this has changed'
PY
