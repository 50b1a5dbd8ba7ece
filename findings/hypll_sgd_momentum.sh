#!/usr/bin/env bash
# hypll 0.1.1: RiemannianSGD with momentum on the Poincare ball adds the first gradient to each step, for ever, and goes to another point.
#
# Expected: the momentum is a decaying sum of gradients, moved along with the point. Near a minimum it vanishes, as the gradients do, and the
# optimizer arrives where it does without momentum. On the Euclidean manifold, this is so.
# Seen: the buffer is scaled to a tangent vector, which makes a copy. The copy gets the new gradient, and is moved to the new point, and is
# then dropped: the line that writes it back is commented out. The buffer stays the gradient of the first step. The optimizer rests where
# the gradient is -momentum times the first one: to minimize the distance to a point, it ends at a distance of 1.2 with momentum 0.9. A
# larger first gradient pushes more. On the Euclidean manifold, no copy is made, and the buffer is written in place.
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
from hypll.optim import RiemannianSGD
from hypll.tensors import ManifoldParameter, ManifoldTensor

print(f'hypll {version("hypll")}')
torch.set_default_dtype(torch.float64)
ball = PoincareBall(Curvature(value=1.0, constraining_strategy=lambda value: value))
start, goal = np.array([-0.5, 0.2]), np.array([0.3, 0.4])


def distance(a, b):
    return np.arccosh(1 + 2 * ((a - b) ** 2).sum() / (1 - a @ a) / (1 - b @ b))


def gradient(a, b, step=1e-6):
    """Of the squared distance in the ball, by differences."""
    units = np.eye(2) * step
    return np.array([(distance(a + unit, b) ** 2 - distance(a - unit, b) ** 2) / (2 * step) for unit in units])


for space in (Euclidean(), ball):
    for momentum in (0.0, 0.5, 0.9):
        point = ManifoldParameter(torch.tensor(start[None]), manifold=space, man_dim=1)
        target = ManifoldTensor(torch.tensor(goal[None]), manifold=space, man_dim=1)
        optimizer = RiemannianSGD([point], lr=0.02, momentum=momentum)
        for _ in range(2000):
            optimizer.zero_grad()
            space.dist(point, target).square().sum().backward()
            optimizer.step()
        end = point.tensor.detach().numpy()[0]
        print(f'{type(space).__name__}, momentum {momentum}: ends at {end.round(3)}, the minimum is at {goal}')
        if space is ball and momentum:
            first, buffer = gradient(start, goal), optimizer.state[point]['momentum_buffer'].tensor.numpy()[0]
            print(f'  distance to the minimum {distance(end, goal):.3f}, buffer {buffer.round(3)}, '
                  f'first gradient {first.round(3)}, gradient at the end {gradient(end, goal).round(3)}')  # fmt: skip
            assert np.allclose(buffer, first, atol=1e-4), 'this has changed'
            assert np.allclose(gradient(end, goal), -momentum * first, atol=1e-3), 'this has changed'
            assert distance(end, goal) > 0.7, 'this has changed'
        else:
            assert np.allclose(end, goal), 'this has changed'
PY
