#!/usr/bin/env bash
# gpytorch 1.15.2: LKJPrior of 3 x 3 matrices or larger is not the LKJ density, and eta = 1 is not uniform.
#
# Expected: "LKJ prior over n x n (positive definite) correlation matrices", pdf(Sigma) ~ |Sigma|^(eta - 1). So for eta = 1, all
# correlation matrices have the same log_prob. In general, two matrices differ by (eta - 1) log(|Sigma_1| / |Sigma_2|).
# Seen: log_prob is the density of the Cholesky factor. This has another volume than the matrix, and the factor between the two
# is missing. For eta = 1 and n = 4, the identity is preferred to strong correlations by a factor of 10 and more.
# LKJCovariancePrior uses it as well. LKJCholeskyFactorPrior, which is documented for the factor, and n = 2 are right.
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
from gpytorch.priors import LKJPrior

print(f'gpytorch {version("gpytorch")}')
torch.set_default_dtype(torch.float64)
rng = np.random.default_rng(0)


def correlation(n, strength):
    a = rng.normal(size=(n, n + 1)) + strength
    c = a @ a.T
    d = np.sqrt(np.diag(c))
    c = c / np.outer(d, d)
    np.fill_diagonal(c, 1)
    return c


for n in (2, 3, 4):
    for eta in (1.0, 2.5):
        prior = LKJPrior(n, torch.tensor(eta))
        matrices = [np.eye(n), correlation(n, 0.5), correlation(n, 2.0)]
        seen = np.array([prior.log_prob(torch.from_numpy(c)).item() for c in matrices])
        right = (eta - 1) * np.log([np.linalg.det(c) for c in matrices])
        # The density of the Cholesky factor L of the matrix has the factors L_kk^(n - k) in addition.
        volume = np.array([(np.arange(n)[::-1] * np.log(np.diag(np.linalg.cholesky(c)))).sum() for c in matrices])
        print(f'n = {n}, eta = {eta}: log_prob minus that of the identity {(seen - seen[0]).round(3)}, '
              f'by the definition {(right - right[0]).round(3)}')  # fmt: skip
        assert np.allclose(seen - seen[0], right + volume, atol=1e-6), 'this has changed'
        assert np.allclose(seen - seen[0], right, atol=1e-6) == (n == 2), 'this has changed'
PY
