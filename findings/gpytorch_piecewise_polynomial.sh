#!/usr/bin/env bash
# gpytorch 1.15.2: PiecewisePolynomialKernel with q=2, the default, has j + 4 j where the documentation has j^2 + 4 j.
#
# Expected: K_ppD,2 = (1 - r)^(j + 2) (1 + (j + 2) r + (j^2 + 4 j + 3) / 3 r^2), with j = floor(D / 2) + q + 1. "See Rasmussen
# and Williams (2006) Equation 4.21", which is the same.
# Seen: the last coefficient is (j + 4 j + 3) / 3. In one dimension with j = 3, it is 6 instead of 8. So the covariance at half
# of the range is 0.156 instead of 0.172. In ten dimensions, it is 0.009 instead of 0.014. With q of 0, 1 and 3, the kernel is
# right.
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
from gpytorch.kernels import PiecewisePolynomialKernel

print(f'gpytorch {version("gpytorch")}')
torch.set_default_dtype(torch.float64)
rng = np.random.default_rng(0)


def by_definition(r, dimension, q):
    j = dimension // 2 + q + 1
    polynomial = {
        0: 1,
        1: (j + 1) * r + 1,
        2: 1 + (j + 2) * r + (j**2 + 4 * j + 3) / 3 * r**2,
        3: 1 + (j + 3) * r + (6 * j**2 + 36 * j + 45) / 15 * r**2 + (j**3 + 9 * j**2 + 23 * j + 15) / 15 * r**3,
    }[q]
    return np.maximum(0, 1 - r) ** (j + q) * polynomial


for dimension in (1, 2, 5, 10):
    points = rng.uniform(size=(20, dimension)) * 2 / np.sqrt(dimension)
    half = np.zeros((2, dimension))
    half[1, 0] = 0.5
    for q in range(4):
        kernel = PiecewisePolynomialKernel(q=q)
        kernel.lengthscale = 1.0
        distances = np.sqrt(((points[:, None] - points[None]) ** 2).sum(axis=-1))
        seen = kernel(torch.from_numpy(points)).to_dense().detach().numpy()
        right = by_definition(distances, dimension, q)
        at_half = kernel(torch.from_numpy(half)).to_dense()[0, 1].item()
        print(f'{dimension} dimensions, q = {q}: largest difference {np.abs(seen - right).max():.4f}. '
              f'At a distance of 0.5 {at_half:.4f}, by the definition {by_definition(0.5, dimension, q):.4f}')  # fmt: skip
        assert np.allclose(seen, right, atol=1e-6) == (q != 2), 'this has changed'
        if q == 2:
            j = dimension // 2 + 3
            other = np.maximum(0, 1 - distances) ** (j + 2) * (1 + (j + 2) * distances + (j + 4 * j + 3) / 3 * distances**2)
            assert np.allclose(seen, other, atol=1e-6), 'this has changed'
assert np.allclose(PiecewisePolynomialKernel().q, 2), 'this has changed'
PY
