#!/usr/bin/env bash
# pomegranate 1.1.2: LogNormal.log_probability is the density of log(x), not that of x.
#
# Expected: log_probability is the log of a density of x, as for Exponential and Gamma. The density of the log-normal distribution is that
# of the normal distribution at log(x), divided by x. Its integral is 1.
# Seen: the division by x is missing. The integral is the mean of the distribution, 2.1 below. Among log-normal distributions only, the
# error is the same for all, and cancels. It does not cancel with others: the mixture of LogNormal and Exponential below assigns 8 to
# LogNormal and 0.5 to Exponential, although by the definition it is the other way round.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet pomegranate==1.1.2 torch==2.13.0 numpy==2.4.6 scipy==1.17.1 scikit-learn==1.9.1 networkx==3.6.1
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import numpy as np
from pomegranate.distributions import Exponential, Gamma, LogNormal
from pomegranate.gmm import GeneralMixtureModel
from scipy import stats

print(f'pomegranate {version("pomegranate")}')
mean, variance = 0.5, 0.49
model = LogNormal([mean], [variance], covariance_type='diag')
right = stats.lognorm(s=variance**0.5, scale=np.exp(mean))
x = np.linspace(1e-3, 100, 400_001, dtype=np.float32)[:, None]
density = np.exp(model.log_probability(x).numpy())
others = [np.trapezoid(np.exp(other.log_probability(x).numpy()), x[:, 0]) for other in (Exponential([2.0]), Gamma([2.0], [3.0]))]
integral = np.trapezoid(density, x[:, 0])
print(f'integral of the density: {integral:.4f}, of Exponential and Gamma {np.round(others, 4)}. Mean {right.mean():.4f}')
assert np.allclose(others, 1, atol=0.01) and np.isclose(integral, right.mean(), rtol=1e-3), 'this has changed'

points = np.array([[0.5], [1.0], [2.0], [8.0]], dtype=np.float32)
for covariance_type, covs in (('diag', [variance]), ('full', [[variance]])):
    seen = LogNormal([mean], covs, covariance_type=covariance_type).log_probability(points).numpy()
    print(f'{covariance_type}, at {points[:, 0]}: {seen.round(3)}, by the definition {right.logpdf(points[:, 0]).round(3)}')
    assert np.allclose(seen - right.logpdf(points[:, 0]), np.log(points[:, 0]), atol=1e-4), 'this has changed'

mixture = GeneralMixtureModel([LogNormal([mean], [variance], covariance_type='diag'), Exponential([5.0])], priors=[0.5, 0.5])
seen = mixture.predict_proba(points).numpy()[:, 0]
a, b = right.pdf(points[:, 0]), stats.expon(scale=5).pdf(points[:, 0])
print(f'mixture with Exponential, probability of LogNormal: {seen.round(3)}, by the definition {(a / (a + b)).round(3)}')
wrong = (seen > 0.5) != (a / (a + b) > 0.5)
assert np.allclose(seen, a * points[:, 0] / (a * points[:, 0] + b), atol=1e-4) and wrong[0] and wrong[3], 'this has changed'
PY
