#!/usr/bin/env bash
# factor_analyzer 0.5.1: uniquenesses and the test of sufficiency change with an oblique rotation, which does not change the
# fit.
#
# Expected: sufficiency gives the statistic of Lawley and Maxwell (1971) for the hypothesis that "the selected number of factors
# is sufficient". It depends on the uniquenesses of the fit, and no rotation changes these. With correlated factors, the
# communalities are the diagonal of L phi L^T.
# Seen: communalities are row sums of squared loadings for all rotations. With the default promax rotation, they are wrong, and
# so are the uniquenesses, the statistic and the p-value. Orthogonal rotations give what no rotation gives.
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

k, sizes = 4, [2, 3, 3, 4]
truth = np.zeros((12, k))
for factor, stop in enumerate(np.cumsum(sizes)):
    truth[stop - sizes[factor] : stop, factor] = rng.uniform(0.6, 0.9, sizes[factor])
between = np.array([[1, 0.5, 0, 0.2], [0.5, 1, 0.3, 0], [0, 0.3, 1, 0.4], [0.2, 0, 0.4, 1]])
correlation = truth @ between @ truth.T
np.fill_diagonal(correlation, 1)
data = rng.multivariate_normal(np.zeros(12), correlation, size=2000)

observed = np.corrcoef(data.T)


def by_definition(uniquenesses):
    values = np.sort(np.linalg.eigvalsh(observed / np.sqrt(np.outer(uniquenesses, uniquenesses))))[: 12 - k]
    return (len(data) - 1 - 29 / 6 - 2 * k / 3) * (values - np.log(values) - 1).sum()


right = None
for rotation in (None, 'varimax', 'promax', 'oblimin'):
    fitted = FactorAnalyzer(k, rotation=rotation, method='ml').fit(data)
    statistic, degrees, p_value = fitted.sufficiency(len(data))
    uniquenesses = fitted.get_uniquenesses()
    if rotation is None:
        right = uniquenesses
    print(f'{rotation}: uniquenesses {uniquenesses[:4].round(3)}, statistic {statistic:.2f}, p-value {p_value:.4f}, '
          f'by the definition {by_definition(right):.2f}')  # fmt: skip
    same = np.isclose(statistic, by_definition(right), rtol=1e-3)
    assert same == (rotation in (None, 'varimax')), 'this has changed'
    if rotation == 'promax':
        loadings = fitted.loadings_
        phi = np.linalg.lstsq(loadings, fitted.structure_, rcond=None)[0]
        assert np.allclose(1 - np.diag(loadings @ phi @ loadings.T), right, atol=1e-6)
        assert np.abs(uniquenesses - right).max() > 0.02, 'this has changed'
PY
