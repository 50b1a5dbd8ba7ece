#!/usr/bin/env bash
# factor_analyzer 0.5.1: phi_ keeps the order of factors from before these are sorted by variance, unlike loadings_.
#
# Expected: phi_ is "the factor correlations matrix" of the factors of loadings_. The structure matrix is loadings_ times phi_,
# as the code computes it, and L phi L^T is the same for all oblique rotations.
# Seen: the columns of loadings_ and structure_ are sorted by variance at the end, and phi_ is not. So phi_[i, j] is the
# correlation of two other factors. L phi L^T is not the reproduced correlation matrix.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet factor_analyzer==0.5.1 numpy==2.4.6 scipy==1.17.1 pandas==2.3.3 scikit-learn==1.7.2 \
  setuptools==80.9.0
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import numpy as np
from factor_analyzer import FactorAnalyzer

print(f'factor_analyzer {version("factor_analyzer")}')
rng = np.random.default_rng(0)

k, sizes = 4, [3, 2, 4, 3]
truth = np.zeros((12, k))
for factor, stop in enumerate(np.cumsum(sizes)):
    truth[stop - sizes[factor] : stop, factor] = rng.uniform(0.6, 0.9, sizes[factor])
between = np.array([[1, 0.5, 0, 0.2], [0.5, 1, 0.3, 0], [0, 0.3, 1, 0.4], [0.2, 0, 0.4, 1]])
correlation = truth @ between @ truth.T
np.fill_diagonal(correlation, 1)
data = rng.multivariate_normal(np.zeros(12), correlation, size=2000)

plain = FactorAnalyzer(k, rotation=None).fit(data).loadings_
for rotation in ('promax', 'oblimin', 'quartimin'):
    fitted = FactorAnalyzer(k, rotation=rotation).fit(data)
    loadings, phi = fitted.loadings_, fitted.phi_
    right = np.linalg.lstsq(loadings, fitted.structure_, rcond=None)[0]
    order = [int(np.argmax(truth[row] > 0)) for row in np.abs(loadings).argmax(0)]
    print(f'{rotation}: phi_ from its first factor {phi[0].round(2)}, that of loadings_ {right[0].round(2)}')
    print(f'  in the data, the correlations of the same factors are {between[order[0]][order].round(2)}')
    model = plain @ plain.T
    errors = [np.abs(loadings @ matrix @ loadings.T - model).max() for matrix in (phi, right)]
    print(f'  error of L phi L^T: with phi_ {errors[0]:.3f}, with the right order {errors[1]:.3f}')
    assert np.abs(phi - right).max() > 0.2 and errors[0] > 0.05, 'this has changed'
    assert np.allclose(np.linalg.eigvalsh(phi), np.linalg.eigvalsh(right)) and errors[1] < 1e-6
    assert np.abs(right - between[np.ix_(order, order)]).max() < 0.12
PY
