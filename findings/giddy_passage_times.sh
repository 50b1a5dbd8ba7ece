#!/usr/bin/env bash
# giddy 2.3.8: if a Markov chain has two closed classes, mean first passage times within a class are infinite.
#
# Expected: mfpt gives the expected number of steps from a state to another, for "an ergodic/non-ergodic Markov transition probability
# matrix". Within a class which the chain never leaves, it is finite, and is the same as for this class alone. Between two such classes it
# is infinite.
# Seen: for each target, one system of equations holds all other states. Another closed class of two or more states makes it singular. The
# error is caught, and the answer stays infinite for all states, also for the recurrence time of the target. Which classes are hit depends
# on rounding: with 1/2 everywhere, all 16 values of four states are infinite, and with other numbers often one of two classes. The
# example of the documentation has classes of one state, an absorbing one, which are right. On such chains:
# https://github.com/pysal/giddy/pull/109
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet giddy==2.3.8 libpysal==4.14.1 esda==2.8.2 mapclassify==2.10.0 quantecon==0.11.4 \
  numpy==2.4.6 scipy==1.17.1 pandas==3.1.1 matplotlib==3.11.2 geopandas==1.2.0
cd "$folder"
MPLBACKEND=Agg OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import numpy as np
from giddy.ergodic import mfpt

print(f'giddy {version("giddy")}')


def passage(p):
    """Of a chain without closed classes inside: by one system of equations for each target."""
    k = len(p)
    times = np.empty((k, k))
    for j in range(k):
        rest = [i for i in range(k) if i != j]
        steps = np.zeros(k)
        steps[rest] = np.linalg.solve(np.eye(k - 1) - p[np.ix_(rest, rest)], np.ones(k - 1))
        times[:, j] = np.where(np.arange(k) == j, 1 + p[j] @ steps, steps)
    return times


def together(a, b):
    both = np.zeros((len(a) + len(b),) * 2)
    both[: len(a), : len(a)], both[len(a) :, len(a) :] = a, b
    return both


half, alone = np.full((2, 2), 0.5), np.ones((1, 1))
slow = np.array([[0.75, 0.25], [0.5, 0.5]])
pairs = {
    'two absorbing states': (alone, alone),
    'a class of two and an absorbing state': (half, alone),
    'two classes of two': (half, half),
    'two classes of two, one of them slow': (slow, half),
}
for name, (a, b) in pairs.items():
    p = together(a, b)
    with np.errstate(divide='ignore'):
        right = 1 / together(1 / passage(a), 1 / passage(b))  # Infinite between the classes.
    seen = mfpt(p)
    finite, wrong = np.isfinite(right), ~np.isclose(seen, right)
    print(f'{name}: within classes {seen[finite].round(2).tolist()}, expected {right[finite].round(2).tolist()}')
    assert np.isinf(seen[wrong]).all() and np.isfinite(right[wrong]).all(), 'this has changed'
    assert (wrong == finite).all() if min(len(a), len(b)) > 1 else not wrong.any(), 'this has changed'

rng = np.random.default_rng(0)
lost = hit = 0
for _ in range(200):
    a, b = (rng.integers(1, 10, (size, size)).astype(float) for size in rng.integers(2, 5, 2))
    a, b = a / a.sum(1, keepdims=True), b / b.sum(1, keepdims=True)
    seen = mfpt(together(a, b))
    inside = together(np.ones_like(a), np.ones_like(b)) > 0
    lost, hit = lost + np.isinf(seen[inside]).sum(), hit + np.isinf(seen[inside]).any()
print(f'200 random chains of two classes: {lost} passage times within a class are infinite, in {hit} chains')
assert hit > 20, 'this has changed'
PY
