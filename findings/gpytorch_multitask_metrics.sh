#!/usr/bin/env bash
# gpytorch 1.15.2: standardized metrics per task divide by the variance over all tasks, so tasks of different means are wrong.
#
# Expected: standardized_mean_squared_error "standardizes the mean squared error by the variance of the test data".
# mean_standardized_log_loss "subtracts the loss obtained under the trivial model which predicts with the mean and variance of
# the training data". So this model has about 1 and 0. Both return a number per task, and use the mean of each task.
# Seen: the variance is taken over all entries of all tasks. With one task near 0 and another one near 100, the prediction of
# the mean of each task has 0.0003 and not 1, and a log loss of -3.4 and not 0. So the trivial model seems to be nearly perfect.
# Batches share it.
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
from gpytorch.metrics import mean_standardized_log_loss, standardized_mean_squared_error

print(f'gpytorch {version("gpytorch")}')
torch.set_default_dtype(torch.float64)
rng = np.random.default_rng(0)
n = 50
y = np.stack([rng.normal(size=n), 100 + rng.normal(size=n)], axis=1)  # two tasks
means, variances = y.mean(axis=0), y.var(axis=0, ddof=1)


def log_loss(values, mean, variance):
    return (0.5 * np.log(2 * np.pi * variance) + (values - mean) ** 2 / (2 * variance)).mean(axis=0)


right_smse = ((y - means) ** 2).mean(axis=0) / variances
right_msll = log_loss(y, means, variances) - log_loss(y, means, variances)
single = [MultivariateNormal(torch.full((n,), means[k]), torch.eye(n) * variances[k]) for k in range(2)]
joint = MultitaskMultivariateNormal.from_independent_mvns(single)
covariances = torch.eye(n) * torch.from_numpy(variances)[:, None, None]
batch = MultivariateNormal(torch.from_numpy(means)[:, None].repeat(1, n), covariances)
data = torch.from_numpy(y)
results = {
    'each task alone': [
        np.array([float(standardized_mean_squared_error(single[k], data[:, k])) for k in range(2)]),
        np.array([float(mean_standardized_log_loss(single[k], data[:, k], data[:, k])) for k in range(2)]),
    ],
    'two tasks': [standardized_mean_squared_error(joint, data).numpy(), mean_standardized_log_loss(joint, data, data).numpy()],
    'a batch of two': [standardized_mean_squared_error(batch, data.T).numpy(), None],
}
for name, (smse, msll) in results.items():
    text = '' if msll is None else f', standardized log loss {msll.round(3)}, right {right_msll.round(3)}'
    print(f'{name}: standardized squared error {smse.round(4)}, right {right_smse.round(4)}{text}')
    alone = name == 'each task alone'
    assert np.allclose(smse, right_smse, atol=1e-6) == alone and (alone or smse.max() < 0.01), 'this has changed'
    assert msll is None or np.allclose(msll, 0, atol=1e-6) == alone, 'this has changed'
    assert msll is None or alone or msll.max() < -2, 'this has changed'
PY
