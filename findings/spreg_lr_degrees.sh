#!/usr/bin/env bash
# spreg 1.9.0: likelihood ratio tests count the constant in Probit, and do not count the error parameter of ML_Error.
#
# Expected: the degrees of freedom are the difference of the numbers of parameters of both models. The null model of the test of Probit has
# a constant, as its likelihood L0 is that of the mean of y: with one regressor, there is 1 degree of freedom.
# Seen: Probit takes the number of all coefficients, with the constant: 2. Under the null hypothesis, 5% of the p-values should be below
# 0.05, but about 1.4% are. likratiotest takes the difference of the attributes k. ML_Lag counts its spatial parameter in k, ML_Error does
# not. OLS against ML_Error with lags of 2 regressors has 3 more parameters, but 2 degrees of freedom, and OLS against ML_Lag with the same
# has 3. The p-value of ML_Error with lags is too small.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet spreg==1.9.0 libpysal==4.14.1 numpy==2.4.6 scipy==1.17.1 pandas==3.1.1 scikit-learn==1.9.1 \
  geopandas==1.2.0 shapely==2.2.0 networkx==3.6.1
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
import contextlib
import io
from importlib.metadata import version

import numpy as np
from libpysal.weights import lat2W
from scipy import stats
from spreg import OLS, ML_Error, ML_Lag, Probit, likratiotest

print(f'spreg {version("spreg")}')
rng = np.random.default_rng(0)
values, degrees = [], set()
for _ in range(2000):
    model = Probit((rng.random((200, 1)) < 0.4) * 1.0, rng.normal(size=(200, 1)))  # Nothing depends on the regressor.
    values.append(model.LR)
    degrees.add(model.LRtest['df'])
statistics, p = np.array(values).T
mean = model.y.mean()
null = 200 * (mean * np.log(mean) + (1 - mean) * np.log(1 - mean))
seen, right = (p < 0.05).mean(), (stats.chi2(1).sf(statistics) < 0.05).mean()
print(f'Probit, one regressor without any effect: degrees of freedom {degrees}, L0 {model.L0:.3f}, of the mean of y {null:.3f}. '
      f'Of 2000 p-values, {seen:.2%} are below 0.05, with 1 degree of freedom {right:.2%}')  # fmt: skip
assert degrees == {2} and np.isclose(model.L0, null) and np.allclose(p, stats.chi2(2).sf(statistics)), 'this has changed'
assert seen < 0.025 < 0.04 < right < 0.065, 'this has changed'

w = lat2W(8, 8)
w.transform = 'r'
x = rng.normal(size=(64, 2))
y = 1 + x @ [[1.0], [2.0]] + 0.5 * w.sparse @ x[:, :1] + rng.normal(size=(64, 1))
ols = OLS(y, x)
found = {}
for kind in (ML_Lag, ML_Error):
    for lags in (0, 1):
        with contextlib.redirect_stdout(io.StringIO()):
            model = kind(y, x, w, slx_lags=lags)
        more = len(model.betas) - len(ols.betas)
        test = likratiotest(ols, model)
        found[kind, lags] = test['df'] - more
        print(f'OLS against {kind.__name__} with {2 * lags} lags of regressors: {more} more parameters, {test["df"]} degrees of freedom, '
              f'p = {test["p-value"]:.4f}, by the definition {stats.chi2(more).sf(test["likr"]):.4f}')  # fmt: skip
assert found == {(ML_Lag, 0): 0, (ML_Lag, 1): 0, (ML_Error, 0): 0, (ML_Error, 1): -1}, 'this has changed'
PY
