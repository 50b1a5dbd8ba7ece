#!/usr/bin/env bash
# hypll 0.1.1: midpoint of the Euclidean manifold ignores the weights.
#
# Expected: midpoint(x, w=w) is the mean with weights w, as on the Poincare ball, where it is the Einstein midpoint. With a very small
# curvature, the ball is Euclidean space, and both give the same.
# Seen: the Euclidean manifold takes w, and gives the mean without weights, with no warning. A point of weight 0 moves it.
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
from hypll.manifolds.euclidean import Euclidean
from hypll.manifolds.poincare_ball import Curvature, PoincareBall
from hypll.tensors import ManifoldTensor

print(f'hypll {version("hypll")}')
torch.set_default_dtype(torch.float64)
ball = PoincareBall(Curvature(value=1e-9, constraining_strategy=lambda value: value))
points = torch.tensor([[0.0, 0.0], [0.5, 0.0], [0.0, 0.5]])
for w in ([1, 1, 1], [3, 1, 0], [1, 0, 0]):
    w = torch.tensor(w, dtype=torch.float64)
    right = (w[:, None] * points).sum(0) / w.sum()
    seen = [space.midpoint(ManifoldTensor(points, manifold=space, man_dim=1), batch_dim=[0], w=w[:, None]).tensor.squeeze(0)
            for space in (Euclidean(), ball)]  # fmt: skip
    print(f'weights {w.int().tolist()}: Euclidean {seen[0].numpy().round(3)}, ball of curvature 1e-9 '
          f'{seen[1].numpy().round(3)}, by the definition {right.numpy().round(3)}')  # fmt: skip
    assert np.allclose(seen[1], right, atol=1e-6) and np.allclose(seen[0], points.mean(0)), 'this has changed'
assert not np.allclose(seen[0], right), 'this has changed'
PY
