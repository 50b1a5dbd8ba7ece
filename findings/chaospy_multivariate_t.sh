#!/usr/bin/env bash
# chaospy 4.3.21: MvStudentT is a linear map of independent t variables, and not the multivariate t distribution.
#
# Expected: the "Multivariate Student-T Distribution", with the density in proportion to (1 + d^2 / df)^(-(df + n) / 2), where
# d^2 = (x - mu)^T sigma^-1 (x - mu). It depends on x through d alone. Extremes of the variables come together.
# Seen: the density is the product of n densities of t of the coordinates of L^-1 (x - mu), with the Cholesky factor L. Points
# of equal d have different densities. The squares of uncorrelated variables are uncorrelated. With df = 6 and the multivariate
# t, their correlation is 1 / 4. Joint extremes are too rare.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet chaospy==4.3.21 numpoly==1.3.9 numpy==2.4.6 scipy==1.17.1 setuptools==80.9.0
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import chaospy
import numpy as np
from scipy.stats import multivariate_t, t

print(f'chaospy {version("chaospy")}')
df, mu, sigma = 6, np.array([1.0, 2.0]), np.array([[1.0, 0.5], [0.5, 2.0]])
distribution = chaospy.MvStudentT(df, mu, sigma)
factor = np.linalg.cholesky(sigma)
angles = np.linspace(0, np.pi / 2, 5)
points = mu[:, None] + factor @ (3 * np.array([np.cos(angles), np.sin(angles)]))  # all at d = 3
seen, right = distribution.pdf(points), multivariate_t(mu, sigma, df).pdf(points.T)
constant = (df / 2) / (df * np.pi * np.sqrt(np.linalg.det(sigma)))  # Gamma(df / 2 + 1) = df / 2 Gamma(df / 2)
assert np.allclose(right, constant * (1 + 9 / df) ** (-(df + 2) / 2))
print(f'densities of five points of equal d: {seen.round(5)}, by the definition {right.round(5)}')
product = t(df).pdf(np.linalg.solve(factor, points - mu[:, None])).prod(0) / np.linalg.det(factor)
assert np.allclose(seen, product) and seen.max() / seen.min() > 1.5, 'this has changed'

rng = np.random.default_rng(0)
samples = chaospy.MvStudentT(df, [0, 0], [[1, 0], [0, 1]]).inv(rng.random((2, 400000)))
exact = rng.normal(size=(2, 400000)) / np.sqrt(rng.chisquare(df, 400000) / df)
extreme = [(np.abs(values) > 4).all(0).mean() * 1e4 for values in (samples, exact)]
print(f'both variables beyond 4, in 10000 samples: {extreme[0]:.2f}, by the definition {extreme[1]:.2f}')
assert extreme[0] < 1.5, 'this has changed'
assert extreme[1] > 4
PY
