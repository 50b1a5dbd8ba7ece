#!/usr/bin/env bash
# pomegranate 1.1.2: StudentT.sample draws with the means as degrees of freedom, the variances as means, and no scale.
#
# Expected: samples follow the distribution of log_probability, which is right: covs scales the square of the distance to means, and dofs
# are the degrees of freedom. Half of the samples are above the mean.
# Seen: sample gives means and covs to the distribution of torch as the first two of its arguments, which are the degrees of freedom and the
# mean. dofs has no effect. The median of the samples is covs, their quartiles are those of a scale of 1. A mean of 0 is an error.
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
from pomegranate.distributions import StudentT
from scipy import stats

print(f'pomegranate {version("pomegranate")}')
torch.manual_seed(0)
quantiles = [0.25, 0.5, 0.75]
for dofs, mean, cov in ((5, 3.0, 9.0), (50, 3.0, 9.0), (5, 20.0, 0.25)):
    model = StudentT(dofs, [mean], [cov], covariance_type='diag')
    right = stats.t(dofs, loc=mean, scale=cov**0.5)
    other = stats.t(mean, loc=cov, scale=1)
    seen = np.quantile(model.sample(200_000).numpy(), quantiles)
    print(f'dofs {dofs}, mean {mean}, covs {cov}: quartiles of samples {seen.round(2)}, by the definition '
          f'{right.ppf(quantiles).round(2)}, with mean degrees of freedom and mean covs {other.ppf(quantiles).round(2)}')  # fmt: skip
    assert np.isclose(model.log_probability([[mean + 1]]).item(), right.logpdf(mean + 1)), 'this has changed'
    assert np.allclose(seen, other.ppf(quantiles), atol=0.05), 'this has changed'
    assert not np.allclose(seen, right.ppf(quantiles), atol=1), 'this has changed'

try:
    StudentT(5, [0.0], [1.0], covariance_type='diag').sample(1)
except ValueError:
    print('mean 0: an error')
else:
    raise AssertionError('this has changed')
PY
