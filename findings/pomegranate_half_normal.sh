#!/usr/bin/env bash
# pomegranate 1.1.2: HalfNormal.fit finds 0.36 times the variance parameter, and log_probability is no density of several features.
#
# Expected: the distribution is zero for negative numbers, and its variance is (1 - 2 / pi) sigma^2, says the documentation. For one
# feature, log_probability takes covs for sigma^2. The most likely sigma^2 for data is the mean of the squares. The density of d independent
# features is the product of d densities, each twice that of the normal distribution.
# Seen: fit subtracts the square of the mean, as for a normal distribution with its own mean, but then sets the mean to 0. covs is the
# variance of the data, 0.36 sigma^2. Data have a much lower likelihood than with the right covs. log_probability adds log(2) once, for any
# number of features: over positive numbers, the density of 3 features has the integral 1 / 4. Negative numbers have the density of positive
# ones.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet pomegranate==1.1.2 torch==2.13.0 numpy==2.4.6 scipy==1.17.1 scikit-learn==1.9.1 networkx==3.6.1
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import numpy as np
from pomegranate.distributions import HalfNormal
from scipy import stats

print(f'pomegranate {version("pomegranate")}')
sigma = np.array([2.0, 3.0, 0.5])
x = np.abs(np.random.default_rng(0).normal(size=(50_000, 3)) * sigma).astype(np.float32)
right = (x**2).mean(0)
print(f'sigma^2 {sigma**2}, mean of the squares {right.round(3)}, which scipy.stats.halfnorm.fit also finds')
assert np.allclose(right, [stats.halfnorm.fit(column, floc=0)[1] ** 2 for column in x.T], rtol=1e-4), 'the definition is wrong'

for covariance_type in ('diag', 'full'):
    model = HalfNormal(covariance_type=covariance_type).fit(x)
    covs = model.covs.detach().numpy()
    covs = np.diag(covs) if covariance_type == 'full' else covs
    print(f'{covariance_type}: covs {covs.round(3)}, divided by the mean of the squares {(covs / right).round(3)}')
    assert np.allclose(covs, x.var(0), rtol=1e-3) and np.allclose(covs / right, 1 - 2 / np.pi, atol=0.01), 'this has changed'

model = HalfNormal(covariance_type='diag').fit(x)
likelihood = stats.halfnorm(scale=model.covs.detach().numpy() ** 0.5).logpdf(x).sum(1).mean()
best = stats.halfnorm(scale=right**0.5).logpdf(x).sum(1).mean()
print(f'mean log likelihood of the data by the definition: {likelihood:.3f} with the covs of fit, {best:.3f} with the mean of the squares')
assert best - likelihood > 0.9, 'this has changed'

for features in (1, 2, 3):
    model = HalfNormal(covariance_type='diag').fit(x[:, :features])
    density = stats.halfnorm(scale=model.covs.detach().numpy() ** 0.5).logpdf(x[:5, :features]).sum(1)
    seen = model.log_probability(x[:5, :features]).numpy()
    negative = model.log_probability(-x[:5, :features]).numpy()
    print(f'{features} features: density divided by that of the same covs {np.exp(seen - density).round(4)}, of the negative numbers '
          f'divided by that of the positive {np.exp(negative - seen).round(4)}')  # fmt: skip
    assert np.allclose(seen - density, (1 - features) * np.log(2), atol=1e-4) and np.allclose(negative, seen), 'this has changed'
PY
