#!/usr/bin/env bash
# hypll 0.1.1: HAvgPool2d shrinks what it averages towards the origin. The average of equal points is another point.
#
# Expected: a mean of points which are all p is p, also on a manifold. With a very small curvature, the average is that of Euclidean space,
# up to the small curvature.
# Seen: the layer cuts windows with the function of the convolution, which multiplies tangent vectors by a ratio of beta functions, for
# their concatenation ("Hyperbolic Neural Networks++", section 3.3). The mean is taken of these scaled points, and nothing takes the scale
# back: with 3 channels and windows of 2 x 2, an image of equal points at 0.5 becomes one of points at 0.24, with 4 x 4 at 0.12, also with
# use_midpoint. It goes wrong at each layer, and more in larger windows. Windows of 1 x 1, HMaxPool2d, and the Euclidean manifold are right.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet hypll==0.1.1 torch==2.13.0 numpy==2.4.6
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version
from math import gamma

import numpy as np
import torch
from hypll.manifolds.euclidean import Euclidean
from hypll.manifolds.poincare_ball import Curvature, PoincareBall
from hypll.nn import HAvgPool2d, HMaxPool2d
from hypll.tensors import ManifoldTensor

print(f'hypll {version("hypll")}')
torch.set_default_dtype(torch.float64)


def curved(c):
    return PoincareBall(Curvature(value=float(c), constraining_strategy=lambda value: value))


def pooled(layer, image):
    return layer(ManifoldTensor(image, manifold=layer.manifold, man_dim=1)).tensor


def beta(a, b):
    return gamma(a) * gamma(b) / gamma(a + b)


p = torch.tensor([0.3, 0.4, 0.0])
image = p[None, :, None, None].repeat(1, 1, 8, 8)
ball, flat = curved(1), Euclidean()
for size in (1, 2, 4):
    factor = beta(3 * size**2 / 2, 0.5) / beta(1.5, 0.5)
    shrunk = np.tanh(size * factor * np.arctanh(0.5)) / size  # A window is size times as long as p.
    for midpoint in (False, True):
        norm = pooled(HAvgPool2d(size, ball, use_midpoint=midpoint), image).norm(dim=1)
        print(f'windows {size} x {size}, use_midpoint={midpoint}: equal points at 0.5 have their average at {norm.max():.4f}')
        assert np.allclose(norm, shrunk) and (size == 1 or norm.max() < 0.25), 'this has changed'
    for layer in (HMaxPool2d(size, ball), HAvgPool2d(size, flat)):
        assert np.allclose(pooled(layer, image).norm(dim=1), 0.5), 'this has changed'

rng = torch.Generator().manual_seed(0)
image = torch.rand(1, 3, 8, 8, generator=rng) - 0.5
right = image.reshape(1, 3, 4, 2, 4, 2).mean((3, 5))
seen = pooled(HAvgPool2d(2, curved(1e-6)), image)
ratio = (seen * right).sum() / right.square().sum()
print(f'curvature 1e-6, windows 2 x 2: the average is {ratio:.4f} times that of Euclidean space')
assert np.allclose(seen, ratio * right, atol=1e-4) and abs(ratio - beta(6, 0.5) / beta(1.5, 0.5)) < 1e-3, 'this has changed'
PY
