#!/usr/bin/env bash
# reservoirpy 0.4.2: narma is not the documented system: its sum lacks y[t], and its input is one step too old.
#
# Expected: reservoirpy.datasets.narma is documented as y[t+1] = a1 y[t] + a2 y[t] (sum over i = 0, ..., n - 1 of y[t-i]) + b
# u[t-(n-1)] u[t] + c, "as first defined in" Atiya and Parlos (2000). For order 10, the oldest input which is needed is 9
# steps old.
# Seen: the sum is that of y[t-n] to y[t-1], so that y[t] is missing and y[t-n] is in it. The product has u[t-n] instead of
# u[t-(n-1)]. So a task of order 10 is of order 11: memory of one more step is needed than for the benchmark of this name.
# Errors are not comparable with those in the literature.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet reservoirpy==0.4.2 numpy==2.3.5 scipy==1.17.1 joblib==1.6.0 tqdm==4.70.1
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import numpy as np
from reservoirpy.datasets import narma

print(f'reservoirpy {version("reservoirpy")}')
for order, a1, a2, b, c in ((10, 0.3, 0.05, 1.5, 0.1), (30, 0.2, 0.04, 1.5, 0.001)):
    u, y = narma(200, order=order, a1=a1, a2=a2, b=b, c=c, seed=0)
    inputs, values = u[:, 0], y[:, 0]
    assert inputs.shape == (200 + order,) and values.shape == (200,)
    errors = {}
    for name, old in (('documented', 0), ('one step older', 1)):
        worst = 0.0
        for t in range(60, 199):  # index into y, which starts at time order
            total = sum(values[t - i - old] for i in range(order))
            product = inputs[t + order - (order - 1) - old] * inputs[t + order]
            worst = max(worst, abs(a1 * values[t] + a2 * values[t] * total + b * product + c - values[t + 1]))
        errors[name] = worst
    print(f'order {order}: largest error of the documented equation {errors["documented"]:.4f}, '
          f'with all old terms one step older {errors["one step older"]:.1e}')  # fmt: skip
    assert errors['documented'] > 0.05 and errors['one step older'] < 1e-12, 'this has changed'

# The oldest input which changes y[t+1], for order 10: 9 steps before t by the documentation.
options = {'order': 10, 'a1': 0.0, 'a2': 0.0, 'b': 1.5, 'c': 0.1}
u, y = narma(60, seed=0, **options)
oldest = 0
for back in range(20):
    other = u.copy()
    other[50 - back] += 0.1
    if abs(narma(60, u=other, **options)[1] - y)[51 - 10, 0] > 1e-12:
        oldest = back
print(f'order 10: the oldest input in y[t+1] is u[t-{oldest}], by the documentation u[t-9]')
assert oldest == 10, 'this has changed'
PY
