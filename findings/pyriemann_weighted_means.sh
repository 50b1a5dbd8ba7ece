#!/usr/bin/env bash
# pyriemann 0.12: the ALM, BMP and cheap means of two matrices with weights 1 and 3 lie beyond the second matrix.
#
# Expected: mean_alm, mean_bmp and mean_cheap take sample_weight, the "weights for each matrix". They are geometric means: that
# of two matrices is on the geodesic from the first to the second, at the share of the second weight. mean_riemann and mean_ale
# do this. Of commuting matrices, the mean is exp(sum of w_i log X_i).
# Seen: the position on the geodesic is w_2 / w_1 / 2, which is w_2 for equal weights alone. With weights 1 and 3, it is 1.5,
# and with 1 and 9 it is 4.5. A weight of 0.9 for the first gives 0.056 in place of 0.1. mean_cheap of three or more matrices
# ignores the weights. gmean(X, metric='alm', sample_weight=...) is one of these functions.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet pyriemann==0.12 numpy==2.4.6 scipy==1.17.1 scikit-learn==1.8.0 joblib==1.5.3 \
  matplotlib==3.11.2 array-api-compat==1.16.0 array-api-extra==0.11.5
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import numpy as np
from pyriemann.geometry.mean import gmean

print(f'pyriemann {version("pyriemann")}')


def power(matrix, exponent):
    values, vectors = np.linalg.eigh(matrix)
    return vectors * values**exponent @ vectors.T


def geodesic(first, other, t):
    root, inverse = power(first, 0.5), power(first, -0.5)
    return root @ power(inverse @ other @ inverse, t) @ root


def distance(first, other):
    inverse = power(first, -0.5)
    return np.sqrt((np.log(np.linalg.eigvalsh(inverse @ other @ inverse)) ** 2).sum())


rng = np.random.default_rng(0)
factors = rng.normal(size=(2, 3, 6))
pair = factors @ factors.transpose(0, 2, 1) / 6 + 0.1 * np.eye(3)
whole = distance(*pair)
for weights in ((1, 1), (1, 3), (9, 1)):
    right = geodesic(*pair, weights[1] / sum(weights))
    for metric in ('riemann', 'ale', 'alm', 'bmp', 'cheap'):
        seen = gmean(pair, metric=metric, sample_weight=np.array(weights, float))
        position = distance(pair[0], seen) / whole
        share = weights[1] / sum(weights)
        print(f'two matrices with weights {weights}, {metric}: at {position:.3f} of the way, right {share:.3f}')
        good = metric in ('riemann', 'ale') or weights == (1, 1)
        assert np.allclose(seen, right, rtol=1e-5) == good, 'this has changed'
        assert good or np.allclose(seen, geodesic(*pair, weights[1] / weights[0] / 2)), 'this has changed'
diagonals = rng.uniform(0.5, 5, (3, 3))
weights = np.array([0.1, 0.2, 0.7])
right = np.exp(weights @ np.log(diagonals))
for metric in ('riemann', 'cheap'):
    seen = np.diag(gmean(np.array([np.diag(d) for d in diagonals]), metric=metric, sample_weight=weights))
    print(f'three diagonal matrices with weights {weights.tolist()}, {metric}: {seen.round(3)}, right {right.round(3)}')
    assert np.allclose(seen, right, rtol=1e-5) == (metric == 'riemann'), 'this has changed'
    assert metric == 'riemann' or np.allclose(seen, np.exp(np.log(diagonals).mean(0)), rtol=1e-5), 'this has changed'
PY
