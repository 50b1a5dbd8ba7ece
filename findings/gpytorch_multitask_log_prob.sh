#!/usr/bin/env bash
# gpytorch 1.15.2: log_prob of MultitaskMultivariateNormal with interleaved=False mixes up the values of points and tasks.
#
# Expected: with interleaved=False, the covariance is ordered by tasks: first all points of the first task, then those of the
# second. mean and variance of shape n x t are read so. log_prob(value) of an n x t value is the normal log density of the
# value in this order, value.T.reshape(-1).
# Seen: the value is not transposed. It is read as t x n, and that is transposed. So values of other points and tasks are
# compared with each mean. log_prob of the mean is not the largest one. from_independent_mvns makes such distributions, so that
# log_prob of independent tasks is not the sum of that of each, and the metric negative_log_predictive_density is wrong, too.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet gpytorch==1.15.2 linear-operator==0.6.1 torch==2.13.0 numpy==2.4.6 scipy==1.17.1 \
  scikit-learn==1.9.1 jaxtyping==0.3.11 mpmath==1.3.0
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import numpy as np
import torch
from gpytorch.distributions import MultitaskMultivariateNormal, MultivariateNormal
from gpytorch.metrics import negative_log_predictive_density
from scipy.stats import multivariate_normal

print(f'gpytorch {version("gpytorch")}')
torch.set_default_dtype(torch.float64)
rng = np.random.default_rng(0)
n, t = 4, 3
a = rng.normal(size=(n * t, n * t))
covariance, mean, value = a @ a.T + np.eye(n * t), rng.normal(size=(n, t)), rng.normal(size=(n, t))
for interleaved in (True, False):
    distribution = MultitaskMultivariateNormal(torch.from_numpy(mean), torch.from_numpy(covariance), interleaved=interleaved)
    order = (lambda x: x.reshape(-1)) if interleaved else (lambda x: x.T.reshape(-1))
    seen = distribution.log_prob(torch.from_numpy(value)).item()
    at_mean = distribution.log_prob(torch.from_numpy(mean)).item()
    right = multivariate_normal.logpdf(order(value), order(mean), covariance)
    best = multivariate_normal.logpdf(order(mean), order(mean), covariance)
    scrambled = value.reshape(t, n).T.reshape(-1)
    variance = np.diag(covariance).reshape(n, t) if interleaved else np.diag(covariance).reshape(t, n).T
    print(f'interleaved={interleaved}: log_prob {seen:.4f}, right {right:.4f}. Of the mean {at_mean:.4f}, right {best:.4f}')
    assert np.allclose(distribution.mean, mean) and np.allclose(distribution.variance, variance), 'this has changed'
    assert np.isclose(seen, right) == interleaved and np.isclose(at_mean, best) == interleaved, 'this has changed'
    assert interleaved or np.isclose(seen, multivariate_normal.logpdf(scrambled, order(mean), covariance)), 'this has changed'

single = [MultivariateNormal(torch.from_numpy(m), torch.eye(n) * 0.1) for m in (np.zeros(n), np.full(n, 5.0), np.full(n, 9.0))]
joint = MultitaskMultivariateNormal.from_independent_mvns(single)
seen, right = joint.log_prob(joint.mean).item(), sum(d.log_prob(d.mean).item() for d in single)
density = negative_log_predictive_density(joint, joint.mean).item()
print(f'independent tasks at their means: log_prob {seen:.2f}, sum over the tasks {right:.2f}. '
      f'negative_log_predictive_density {density:.2f}, right {-right / n:.2f}')  # fmt: skip
assert seen < right - 100 and np.isclose(density, -seen / n), 'this has changed'
PY
