#!/usr/bin/env bash
# reservoirpy 0.4.2: the Runge-Kutta method of mackey_glass has two wrong factors, so that it is of order 1 instead of 4.
#
# Expected: reservoirpy.datasets.mackey_glass solves dx/dt = a x(t-tau) / (1 + x(t-tau)^n) - b x(t). Its step is documented as
# "Runge-Kuta method (RK4) for Mackey-Glass timeseries discretization". The delayed value is constant within a step. So the
# equation of a step is linear, and RK4 is exact up to (b h)^5 / 120, that is 1e-7 for b = 0.1 and h = 1.
# Seen: the code has k2 and k3 already doubled, as their weights are 2. The next slopes need a half and the whole of the
# undoubled ones, but get twice as much. So a step is wrong by (b h)^2 / 3 about, and halving h only halves the error of a
# trajectory. With the default h = 1, a decay of b = 0.1 is one of 0.0967. The benchmark series is that of other parameters.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet reservoirpy==0.4.2 numpy==2.3.5 scipy==1.17.1 joblib==1.6.0 tqdm==4.70.1
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import numpy as np
from reservoirpy.datasets import mackey_glass

print(f'reservoirpy {version("reservoirpy")}')


def step(x, delayed, a, b, n, h):
    def derivative(x):
        return a * delayed / (1 + delayed**n) - b * x

    k1 = derivative(x)
    k2 = derivative(x + h / 2 * k1)
    k3 = derivative(x + h / 2 * k2)
    exact = a * delayed / (1 + delayed**n) / b
    return x + h / 6 * (k1 + 2 * k2 + 2 * k3 + derivative(x + h * k3)), exact + (x - exact) * np.exp(-b * h)


rng = np.random.default_rng(0)
history = rng.uniform(0.3, 1.3, 17)
x = mackey_glass(400, history=history, x0=history[-1])[:, 0]
whole = np.concatenate([history, x])
rk4, exact = np.array([step(whole[t], whole[t - 17], 0.2, 0.1, 10, 1.0) for t in range(17, len(whole) - 1)]).T
print(f'one step of h = 1: largest error {np.abs(x[1:] - exact).max():.2e}, of RK4 {np.abs(rk4 - exact).max():.2e}')
assert np.abs(rk4 - exact).max() < 1e-7 and np.abs(x[1:] - exact).max() > 1e-4, 'this has changed'

errors = []
for h in (1.0, 0.5, 0.25, 0.125):  # without the delayed term, the solution is exp(-b t)
    x = mackey_glass(int(10 / h) + 1, a=0.0, b=0.1, tau=17, x0=1.0, h=h)[:, 0]
    errors.append(abs(x[-1] - np.exp(-1)))
    print(f'a = 0, h = {h}: x(10) {x[-1]:.6f}, by the equation {np.exp(-1):.6f}, rate {-np.log(x[-1]) / 10:.5f}')
orders = np.log2(np.array(errors[:-1]) / errors[1:])
print(f'order of the method: {orders.round(2)}, of RK4 4')
assert (orders > 0.9).all() and (orders < 1.1).all() and errors[0] > 0.01, 'this has changed'
PY
