#!/usr/bin/env bash
# spreg 1.9.0: panel_LMlag multiplies a trace by itself instead of by the number of periods, and misses spatial lags.
#
# Expected: the denominator has T tr(WW + W'W) sigma^2, with T periods (Anselin, Le Gallo and Jayet 2008, which the documentation cites).
# For one period this is the lag test of OLS. A robust test and the other simple one have the same sum: LM lag + robust LM error = LM error
# + robust LM lag.
# Seen: it is tr(WW + W'W)^2 sigma^2, which is right only if this trace happens to be T. panel_rLMlag and panel_rLMerror have T. The
# statistic is too small, if the trace is larger than T. Below, the test finds a lag that is there in 7 of 200 panels, and the right
# statistic finds it in 145.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet spreg==1.9.0 libpysal==4.14.1 numpy==2.4.6 scipy==1.17.1 pandas==3.1.1 scikit-learn==1.9.1 \
  geopandas==1.2.0 shapely==2.2.0 networkx==3.6.1
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import numpy as np
from libpysal.weights import lat2W
from scipy import stats
from spreg import OLS, panel_LMerror, panel_LMlag, panel_rLMerror, panel_rLMlag

print(f'spreg {version("spreg")}')
w = lat2W(7, 7)
w.transform = 'r'
dense = w.full()[0]
trace = np.trace(dense @ dense + dense.T @ dense)
rng = np.random.default_rng(0)


def panel(periods, rho):
    """Rows are places within periods, as the functions take them."""
    x = rng.normal(size=(49 * periods, 2))
    mean = 1 + x @ [[1.0], [0.5]] + rng.normal(size=(49 * periods, 1))
    return np.linalg.solve(np.kron(np.eye(periods), np.eye(49) - rho * dense), mean), x


def lag_test(y, x, periods, factor):
    """By the definition, with factor = periods, and with the unbiased variance that all four tests have."""
    lag = np.kron(np.eye(periods), dense)
    z = np.column_stack([np.ones(len(x)), x])
    project = z @ np.linalg.pinv(z)
    fit = project @ y
    residual = y - fit
    variance = (residual**2).sum() / (len(y) - 3)
    wxb = lag @ fit
    denominator = (wxb.T @ (wxb - project @ wxb)).item() / variance + factor * trace
    return ((residual.T @ lag @ y).item() / variance) ** 2 / denominator


for periods in (1, 4):
    y, x = panel(periods, 0.25)
    seen, right, other = panel_LMlag(y, x, w)[0], lag_test(y, x, periods, periods), lag_test(y, x, periods, trace)
    error, robust_lag, robust_error = (test(y, x, w)[0] for test in (panel_LMerror, panel_rLMlag, panel_rLMerror))
    print(f'{periods} periods, trace {trace:.1f}: {seen:.3f}, by the definition {right:.3f}. LM error + robust LM lag - robust LM error '
          f'{error + robust_lag - robust_error:.3f}')  # fmt: skip
    assert np.isclose(seen, other) and np.isclose(error + robust_lag - robust_error, right), 'this has changed'
    if periods == 1:
        ols = OLS(y, x, w=w, spat_diag=True)
        print(f'the lag test of OLS: {ols.lm_lag[0]:.3f}, which has the variance with n instead of n - 3')
        assert abs(ols.lm_lag[0] / right - 1) < 0.2 and seen < 0.2 * right, 'this has changed'

critical = stats.chi2(1).isf(0.05)
found = np.array([[panel_LMlag(y, x, w)[0], lag_test(y, x, 4, 4)] for y, x in (panel(4, 0.2) for _ in range(200))]) > critical
print(f'of 200 panels of 4 periods with rho 0.2, the test finds a lag in {found[:, 0].sum()}, the right statistic in {found[:, 1].sum()}')
assert found[:, 0].sum() < 20 < 130 < found[:, 1].sum(), 'this has changed'
PY
