#!/usr/bin/env bash
# hypll 0.1.1: frechet_variance averages over another axis than batch_dim, if batch_dim comes after the axis of the vectors.
#
# Expected: the variance over batch_dim is the mean of the squared distances to the Frechet mean over batch_dim. It does not depend on the
# order of the axes. The usual order is that of images: batch, channels, height, width, with the vectors along the channels.
# Seen: the distance takes the axis of the vectors away. batch_dim then counts in what is left, and is one too high: with vectors along axis
# 1 and batch_dim=2, the mean is over axis 3. The shape of the answer is that of other axes, or, if they are equally long, only the numbers
# tell. batch_dim=0 is right. frechet_mean is right, but says with keepdim=True that its vectors are along axis 0, when they are along 1.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet hypll==0.1.1 torch==2.13.0 numpy==2.4.6
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import numpy as np
import torch
from hypll.manifolds.poincare_ball import Curvature, PoincareBall
from hypll.tensors import ManifoldTensor

print(f'hypll {version("hypll")}')
torch.set_default_dtype(torch.float64)
ball = PoincareBall(Curvature(value=1.0, constraining_strategy=lambda value: value))
x = (torch.rand(2, 3, 4, 4, generator=torch.Generator().manual_seed(0)) - 0.5) / 2


def squared(a, b):
    """Squared distances in the ball of curvature -1, of vectors along axis 1."""
    a, b = np.asarray(a), np.asarray(b)
    ratio = ((a - b) ** 2).sum(1) / (1 - (a**2).sum(1)) / (1 - (b**2).sum(1))
    return np.arccosh(1 + 2 * ratio) ** 2


def variance(x, man_dim, batch_dim):
    return ball.frechet_variance(ManifoldTensor(x, manifold=ball, man_dim=man_dim), batch_dim=batch_dim).numpy()


def mean(batch_dim):
    return ball.frechet_mean(ManifoldTensor(x, manifold=ball, man_dim=1), batch_dim=batch_dim, keepdim=True)


right = squared(x, mean(2).tensor).mean(1)  # The rows, which are axis 2, are axis 1 without the vectors.
other = squared(x, mean(2).tensor).mean(2)
seen = variance(x, 1, 2)
last = variance(x.movedim(1, 3), 3, 1)  # The same points, with the vectors last.
print(f'over the rows, image 0: vectors at axis 1 {seen[0].round(4)}, vectors last {last[0].round(4)}, '
      f'by the definition {right[0].round(4)}, with the mean over columns {other[0].round(4)}')  # fmt: skip
assert np.allclose(last, right) and np.allclose(seen, other) and abs(seen / right - 1).max() > 0.3, 'this has changed'
assert np.allclose(variance(x, 1, 0), squared(x, mean(0).tensor).mean(0)), 'this has changed'

wide = torch.cat([x, x[..., :2]], dim=3)
shapes = variance(wide, 1, 2).shape, variance(wide.movedim(1, 3), 3, 1).shape
print(f'shape over the rows of {tuple(wide.shape)}: vectors at axis 1 {shapes[0]}, vectors last {shapes[1]}')
assert shapes == ((2, 4), (2, 6)), 'this has changed'

kept = mean(0)
print(f'mean over axis 0 with keepdim=True: shape {tuple(kept.shape)}, axis of the vectors {kept.man_dim}')
assert tuple(kept.shape) == (1, 3, 4, 4) and kept.man_dim == 0, 'this has changed'
PY
