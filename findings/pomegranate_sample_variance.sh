#!/usr/bin/env bash
# pomegranate 1.1.2: Normal, LogNormal and HalfNormal with covariance_type='diag' take the variance for the standard deviation in sample.
#
# Expected: covs are variances for each covariance_type, says the documentation, "and not the standard deviation". Samples of a normal
# distribution with covs=[4] have the variance 4. A model which is fitted to its own samples is the same again.
# Seen: with covariance_type='diag', sample takes covs as the scale: the variance of the samples is 16. log_probability and fit are right.
# With covariance_type='full' the samples are right, for the same model. Variances below 1 get smaller, those above 1 larger. HalfNormal has
# it too, and so have mixtures of such distributions.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet pomegranate==1.1.2 torch==2.13.0 numpy==2.4.6 scipy==1.17.1 scikit-learn==1.9.1 networkx==3.6.1
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import numpy as np
import torch
from pomegranate.distributions import HalfNormal, LogNormal, Normal
from pomegranate.gmm import GeneralMixtureModel

print(f'pomegranate {version("pomegranate")}')
torch.manual_seed(0)
n = 200_000
variances = np.array([4.0, 0.25])


def model(kind, covariance_type):
    covs = variances if covariance_type == 'diag' else np.diag(variances)
    return kind([0.0, 0.0], covs.tolist(), covariance_type=covariance_type)


def variance(samples):
    return samples.numpy().var(0)


for kind, back in ((Normal, torch.Tensor.double), (LogNormal, torch.log)):
    diag, full = (variance(back(model(kind, name).sample(n))) for name in ('diag', 'full'))
    again = Normal(covariance_type='diag').fit(back(model(kind, 'diag').sample(n))).covs.detach().numpy()
    print(f'{kind.__name__}, variances {variances}: of samples {diag.round(2)} with diag, {full.round(2)} with full, '
          f'of a model fitted to the samples {again.round(2)}')  # fmt: skip
    assert np.allclose(full, variances, rtol=0.05), 'this has changed'
    assert np.allclose(diag, variances**2, rtol=0.05) and np.allclose(again, variances**2, rtol=0.05), 'this has changed'

x = torch.tensor([[1.0, 1.0]])
logp = [model(Normal, name).log_probability(x).item() for name in ('diag', 'full')]
right = -0.5 * (np.log(2 * np.pi * variances) + 1 / variances).sum()
print(f'log probability of {x[0].numpy()}: {logp[0]:.4f} with diag, {logp[1]:.4f} with full, by the definition {right:.4f}')
assert np.allclose(logp, right), 'this has changed'

half = HalfNormal(covs=variances.tolist(), covariance_type='diag')
square = (half.sample(n) ** 2).mean(0).numpy()  # The mean of the squares is covs, by the definition.
mixture = GeneralMixtureModel([Normal([0.0], [4.0], covariance_type='diag'), Normal([0.0], [4.0], covariance_type='diag')])
mixed = variance(mixture.sample(n))
print(f'HalfNormal, mean of the squares of samples: {square.round(2)}. A mixture of two Normal with covs 4: variance {mixed.round(2)}')
assert np.allclose(square, variances**2, rtol=0.05) and np.allclose(mixed, 16, rtol=0.05), 'this has changed'
PY
