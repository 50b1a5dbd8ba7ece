#!/usr/bin/env bash
# gpytorch 1.15.2: LKJCovariancePrior.sample gives all variables of a covariance matrix the same standard deviation.
#
# Expected: sd_prior is "a scalar Prior over nonnegative numbers, which is used for each of the n marginal standard deviations
# on the covariance matrix". log_prob is the sum of that of the correlations and of those of the n standard deviations. So these
# are independent.
# Seen: one standard deviation is drawn per matrix, and repeated n times. So the ratio of the largest to the smallest one is 1
# in each sample. By the density, its mean is 2.0 for three variables with standard deviations between 0.5 and 2.
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
from gpytorch.priors import LKJCovariancePrior, SmoothedBoxPrior

print(f'gpytorch {version("gpytorch")}')
torch.manual_seed(0)
rng = np.random.default_rng(0)
n, size = 3, 2000
box = SmoothedBoxPrior(torch.tensor([0.5]), torch.tensor([2.0]), sigma=0.001)
prior = LKJCovariancePrior(n, torch.tensor(1.5), box)
sds = np.sqrt(np.diagonal(prior.sample(torch.Size([size])).numpy(), axis1=1, axis2=2))
right = rng.uniform(0.5, 2, (size, n))
seen_ratio, right_ratio = (np.mean(x.max(axis=1) / x.min(axis=1)) for x in (sds, right))
print(f'first samples of standard deviations {sds[:3].round(3).tolist()}')
print(f'mean ratio of the largest to the smallest one: {seen_ratio:.3f}, by the density {right_ratio:.3f}')
print(f'correlation of the first two: {np.corrcoef(sds[:, 0], sds[:, 1])[0, 1]:.3f}, by the density '
      f'{np.corrcoef(right[:, 0], right[:, 1])[0, 1]:.3f}')  # fmt: skip
assert np.allclose(sds, sds[:, :1], rtol=1e-5) and sds.std() > 0.3, 'this has changed'
assert right_ratio > 1.8

# log_prob has a term per standard deviation, so each of them has the density of sd_prior.
correlations = torch.eye(n)
for one, other in (([1.0, 1.0, 1.0], [0.6, 1.0, 1.9]), ([1.0, 1.0, 1.0], [1.0, 1.0, 2.01])):
    values = []
    for sd in (one, other):
        s = torch.tensor(sd)
        values.append(prior.log_prob(s[:, None] * correlations * s).item())
    terms = [sum(box.log_prob(torch.tensor([v])).item() for v in sd) for sd in (one, other)]
    seen, expected = values[1] - values[0], terms[1] - terms[0]
    print(f'log_prob with {other} minus that with {one}: {seen:.3f}, by a term for each {expected:.3f}')
    assert np.isclose(seen, expected, rtol=1e-3, atol=1e-3), 'this has changed'
PY
