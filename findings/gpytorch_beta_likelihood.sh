#!/usr/bin/env bash
# gpytorch 1.15.2: BetaLikelihood has 1 more in both parameters of the Beta distribution than documented.
#
# Expected: "alpha = m s, beta = (1 - m) s", and p(y | f) = Beta(sigma(f) s, (1 - sigma(f)) s), where sigma is the logistic
# function. So the mean of y for a given f is sigma(f), for every scale s.
# Seen: the parameters are m s + 1 and (1 - m) s + 1. The mean is (m s + 1) / (s + 2), which is pulled towards 0.5, the more the
# smaller the scale is. With m = 0.95 and s = 1, it is 0.65. Small scales can have no density with peaks at 0 and 1.
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
from gpytorch.likelihoods import BetaLikelihood
from scipy.stats import beta

print(f'gpytorch {version("gpytorch")}')
torch.set_default_dtype(torch.float64)
likelihood = BetaLikelihood()
y = np.array([0.1, 0.5, 0.9])
for scale in (1.0, 10.0, 100.0):
    likelihood.scale = scale
    for m in (0.5, 0.95):
        f = torch.tensor([np.log(m / (1 - m))])
        distribution = likelihood(f)
        seen = distribution.log_prob(torch.from_numpy(y)).detach().numpy()
        right = beta.logpdf(y, m * scale, (1 - m) * scale)
        mean = distribution.mean.item()
        print(f'scale {scale}, sigma(f) = {m}: mean {mean:.4f}, by the documentation {m}. '
              f'log p(y = 0.1, 0.5, 0.9) {seen.round(3)}, by the documentation {right.round(3)}')  # fmt: skip
        assert np.allclose(seen, beta.logpdf(y, m * scale + 1, (1 - m) * scale + 1)), 'this has changed'
        assert not np.allclose(seen, right, atol=0.02), 'this has changed'
        assert np.isclose(mean, (m * scale + 1) / (scale + 2)) and np.isclose(beta.mean(m * scale, (1 - m) * scale), m)
PY
