#!/usr/bin/env bash
# gpytorch 1.15.2: expected_log_prob of MultitaskGaussianLikelihood with rank > 0 leaves out the correlation of the noise.
#
# Expected: the likelihood "allows for a full cross-task covariance structure for the noise", of the given rank, and
# expected_log_prob is the expectation of log p(y | f) under the distribution of f. It is a part of the variational lower bound.
# For a distribution of f that is nearly one point, it is log p(y | f).
# Seen: only the diagonal of the noise covariance is used. So VariationalELBO sees tasks with independent noise, and the noise
# correlation has no gradient of its own sign. The marginal has the full covariance. So the model is trained with another
# likelihood than it predicts with. With rank=0, it is right.
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
from gpytorch.distributions import MultitaskMultivariateNormal
from gpytorch.likelihoods import MultitaskGaussianLikelihood
from scipy.stats import multivariate_normal

print(f'gpytorch {version("gpytorch")}')
torch.set_default_dtype(torch.float64)
rng = np.random.default_rng(0)
n, t = 4, 2
f, y = rng.normal(size=(n, t)), rng.normal(size=(n, t))
for rank in (0, 1):
    likelihood = MultitaskGaussianLikelihood(num_tasks=t, rank=rank)
    likelihood.noise = 0.1
    values = []
    for sign in (1.0, -1.0):
        if rank:
            likelihood.task_noise_covar_factor.data = torch.tensor([[1.0], [0.9 * sign]])
            noise = np.array([[1.0, 0.9 * sign], [0.9 * sign, 0.81]]) + 0.1 * np.eye(t)
        else:
            likelihood.task_noises = torch.tensor([1.0, 0.81])
            noise = np.diag([1.0, 0.81]) + 0.1 * np.eye(t)
        point = MultitaskMultivariateNormal(torch.from_numpy(f), 1e-9 * torch.eye(n * t))
        with torch.no_grad():
            seen = likelihood.expected_log_prob(torch.from_numpy(y), point).sum().item()
            marginal = likelihood(point).log_prob(torch.from_numpy(y)).item()
        right = sum(multivariate_normal.logpdf(y[k], f[k], noise) for k in range(n))
        alone = sum(multivariate_normal.logpdf(y[k], f[k], np.diag(np.diag(noise))) for k in range(n))
        values.append(seen)
        print(f'rank {rank}, noise covariance {noise[0, 1]:.1f}: expected log_prob {seen:.3f}, log p(y | f) {right:.3f}, '
              f'of the marginal {marginal:.3f}, with the diagonal alone {alone:.3f}')  # fmt: skip
        assert np.isclose(marginal, right, rtol=1e-4) and np.isclose(seen, alone, rtol=1e-4), 'this has changed'
        assert np.isclose(seen, right, rtol=1e-4) == (rank == 0), 'this has changed'
    assert np.isclose(*values), 'this has changed'
PY
