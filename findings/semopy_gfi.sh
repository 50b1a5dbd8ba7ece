#!/usr/bin/env bash
# semopy 2.3.11: the goodness-of-fit index GFI is the normed fit index NFI.
#
# Expected: calc_gfi is to "calculate GFI (goodness-of-fit index)", and calc_nfi the "NFI (Normed Fit Index)". The GFI of
# Joreskog and Sorbom for a fit by maximum likelihood is 1 - tr((A - I)^2) / tr(A^2), for A = inv(Sigma) S with the fitted
# covariances Sigma and those of the sample, S. It does not depend on any other model. The NFI of Bentler and Bonett is 1 - chi2
# / chi2 of the baseline model.
# Seen: both functions of semopy/stats.py return 1 - chi2 / chi2_base. AGFI is made of this GFI, and is off as well.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet semopy==2.3.11 numpy==2.4.6 scipy==1.17.1 pandas==3.1.1 scikit-learn==1.8.0 \
  sympy==1.14.0 statsmodels==0.15.0 numdifftools==0.11.2
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import numpy as np
import pandas as pd
import semopy

print(f'semopy {version("semopy")}')
rng = np.random.default_rng(0)
n = 300
loadings = np.array([[1, 0.8, 0.7, 0, 0, 0], [0, 0, 0, 1, 0.9, 0.6]])
for scale in (1.0, 0.4):
    values = scale * rng.normal(size=(n, 2)) @ loadings + 0.5 * rng.normal(size=(n, 6))
    data = pd.DataFrame(values, columns=list('abcdef'))
    for description in ('F =~ a + b + c\nG =~ d + e + f', 'F =~ a + b + d\nG =~ c + e + f', 'F =~ a + b + c + d + e + f'):
        model = semopy.Model(description)
        model.fit(data)
        statistics = semopy.calc_stats(model).loc['Value']
        sample, dof = np.cov(data[model.vars['observed']].T, bias=True), statistics.DoF
        a = np.linalg.solve(model.calc_sigma()[0], sample)
        gfi = 1 - np.trace((a - np.eye(6)) @ (a - np.eye(6))) / np.trace(a @ a)
        agfi = 1 - 6 * 7 / 2 / dof * (1 - gfi)
        print(f'signals of {scale}, {description!r}: GFI {statistics.GFI:.4f}, NFI {statistics.NFI:.4f}, AGFI '
              f'{statistics.AGFI:.4f}. By the definition GFI {gfi:.4f}, AGFI {agfi:.4f}')  # fmt: skip
        assert np.isclose(statistics.GFI, statistics.NFI) and abs(gfi - statistics.GFI) > 5e-4, 'this has changed'
PY
