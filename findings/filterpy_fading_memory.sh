#!/usr/bin/env bash
# filterpy 2.0.0: errors of the fading memory filter of order 1 are right only for some time steps: dt*2 stands for dt**2.
#
# Expected: P of filterpy.memory.FadingMemoryFilter is "the diagonal of the covariance matrix. Assumes that variance is one",
# and e is "the truncation error of the filter. Each term must be multiplied by the a_1, a_2, or a_3 of the polynomial for the
# system". In the cited book (Zarchan and Musoff), the variance of the derivative of order 1 is 2 (1 - b)^3 / ((1 + b)^3 dt^2),
# and the error of the value is 2 a_2 dt^2 b^2 / (1 - b)^2.
# Seen: P[1] of order 1 has no dt, and e[0] of order 1 has 2 * dt * 2. With dt = 0.1, the variance is 100 times too small, and
# the error 20 times too large. Orders 0 and 2 are right for any dt.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet filterpy==2.0.0 numpy==2.4.6 scipy==1.17.1
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import numpy as np
from filterpy.memory import FadingMemoryFilter

print(f'filterpy {version("filterpy")}')


def variances(order, dt, beta):
    """A step is x' = A x + b z. The covariance C for noise z of variance 1 solves C = A C A^T + b b^T."""
    size = order + 1
    columns = []
    for state, z in [*((row, 0.0) for row in np.eye(size)), (np.zeros(size), 1.0)]:
        memory = FadingMemoryFilter(state, dt, order, beta)
        memory.update(z)
        columns.append(memory.x.copy())
    a, b = np.stack(columns[:-1], axis=1), columns[-1]
    covariance = np.linalg.solve(np.eye(size**2) - np.kron(a, a), np.outer(b, b).ravel()).reshape(size, size)
    return np.diag(covariance)


def truncation(order, dt, beta, steps=300):
    """The true state less the state of the filter, long after the start, for z = t^(order + 1)."""
    memory, degree = FadingMemoryFilter(np.zeros(order + 1), dt, order, beta), order + 1
    for step in range(1, steps + 1):
        memory.update((step * dt) ** degree)
    true = np.polynomial.Polynomial([0] * degree + [1])
    return np.array([true.deriv(k)(steps * dt) if k else true(steps * dt) for k in range(order + 1)]) - memory.x


for order in (0, 1, 2):
    for dt in (0.1, 1.0, 2.0):
        memory = FadingMemoryFilter(0.0, dt, order, 0.6)
        right, error = variances(order, dt, 0.6), truncation(order, dt, 0.6)
        print(f'order {order}, dt {dt}: P {memory.P.round(4)}, by the recursion {right.round(4)}. '
              f'e {memory.e.round(4)}, by the recursion {error.round(4)}')  # fmt: skip
        assert np.allclose(memory.P, right) == (order != 1 or dt == 1), 'this has changed'
        assert np.allclose(memory.e, error, rtol=1e-3) == (order != 1 or dt == 2), 'this has changed'
        if order == 1:
            assert np.isclose(right[1], memory.P[1] / dt**2) and np.isclose(error[0], memory.e[0] * dt / 2), 'this has changed'
PY
