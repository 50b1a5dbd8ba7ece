#!/usr/bin/env bash
# reservoirpy 0.4.2: the time step of lorenz96 is h squared instead of h.
#
# Expected: h of reservoirpy.datasets.lorenz96 is the "time delta between two discrete timesteps". So two rows of the result
# are connected by the equations over a time of h. With the default h = 0.01, 1000 rows are a time of 10.
# Seen: the total time is multiplied with h a second time. The default gives steps of 0.0001, so that 1000 rows are a time of
# 0.1, in which nearly nothing happens. With h = 0.1, as in the example, the step is 0.01. A warmup is too short by the same
# factor. A forecasting task on these data is trivial. lorenz and rossler take h as documented.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet reservoirpy==0.4.2 numpy==2.3.5 scipy==1.17.1 joblib==1.6.0 tqdm==4.70.1
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import numpy as np
from reservoirpy.datasets import lorenz, lorenz96

print(f'reservoirpy {version("reservoirpy")}')


def field(x, force=8.0):
    return (np.roll(x, -1) - np.roll(x, 2)) * np.roll(x, 1) - x + force


def advance(x, time, derivative, parts=200):  # the method of Runge and Kutta of order 4 with small steps
    step = time / parts
    for _ in range(parts):
        k1 = derivative(x)
        k2 = derivative(x + step / 2 * k1)
        k3 = derivative(x + step / 2 * k2)
        x = x + step / 6 * (k1 + 2 * k2 + 2 * k3 + derivative(x + step * k3))
    return x


tight = {'rtol': 1e-9, 'atol': 1e-9}
start = np.random.default_rng(0).normal(2, 3, 8)
for h in (0.01, 0.05, 0.1):
    n = 101
    rows = lorenz96(n, N=8, h=h, x0=start, **tight)
    squared, right = (advance(start, time, field) for time in (h * h * n / (n - 1), h))
    print(f'h = {h}: change in the first step {np.linalg.norm(rows[1] - start):.5f}, by the equations over h '
          f'{np.linalg.norm(right - start):.5f}, over h squared {np.linalg.norm(squared - start):.5f}')  # fmt: skip
    assert np.allclose(rows[1], squared, atol=1e-6) and not np.allclose(rows[1], right, atol=0.1), 'this has changed'
rows = lorenz96(1000)
print(f'default, 1000 rows: variable 1 moves from {rows[0, 0]:.3f} to {rows[-1, 0]:.3f}, the largest change of any is '
      f'{np.abs(rows - rows[0]).max():.3f}')  # fmt: skip
assert np.abs(rows - rows[0]).max() < 0.05, 'this has changed'
state = np.full(36, 8.0)
state[0] = 8.01
moved = np.abs(advance(state, 10.0, field, 4000) - state).max()
print(f'by the equations, after a time of 10: {moved:.3f}')
assert moved > 3
three = lorenz(1001, x0=[1.0, 2.0, 20.0], **tight)
right = advance(three[0], 0.03, lambda x: np.array([10 * (x[1] - x[0]), x[0] * (28 - x[2]) - x[1], x[0] * x[1] - 8 / 3 * x[2]]))
print(f'lorenz, h = 0.03: first step {three[1].round(3)}, by the equations {right.round(3)}')
assert np.allclose(three[1], right, atol=0.02)
PY
