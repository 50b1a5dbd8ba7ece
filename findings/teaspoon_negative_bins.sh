#!/usr/bin/env bash
# teaspoon 1.6.0: the largest value of a series that is not positive is outside of all bins, and its states are those of others.
#
# Expected: cgss_binning makes the edges of b bins for all values of a series, and cgss_sequence "the sequence of coarse-grained
# state space states": of b bins and n dimensions, there are b**n states, from 0 on. A constant added to the series does not
# change them. The bins of binning_method are "either equal_size or equal_probability".
# Seen: the last edge is the largest value times 1 + 1e-10, to have it inside. This moves the edge up only if the value is
# positive. Of 0 it stays, and of a negative value it goes down, and numpy.digitize puts the largest value into bin b + 1. Its
# number runs over into the next dimension: different states get the same number, and numbers are above b**n. A signal in
# decibels that is cut at 0 has 43% of its states wrong. equal_probability is an error: the code has equal_frequency.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet scikit-learn==1.8.0 numpy==2.4.6 scipy==1.17.1 matplotlib==3.11.2
"$folder/venv/bin/pip" install --quiet --no-deps teaspoon==1.6.0
cd "$folder"
MPLBACKEND=Agg OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import numpy as np
from teaspoon.SP.tsa_tools import cgss_binning, cgss_sequence, takens

print(f'teaspoon {version("teaspoon")}')
b, n, tau = 4, 2, 3
rng = np.random.default_rng(0)
signal = np.minimum(rng.normal(size=500), 0.7)
signal = np.round(signal, 3) - 0.7  # From about -4 to 0: many values are 0, the largest.


def by_definition(series):
    vectors = np.stack([series[:-tau], series[tau:]], axis=1)
    bins = np.floor((vectors - series.min()) / np.ptp(series) * b).astype(int)
    return np.minimum(bins, b - 1) @ b ** np.arange(n)


for shift in (10, 0, -10):
    series = signal + shift
    states = cgss_sequence(takens(series, n, tau), cgss_binning(series, n, tau, b=b))
    right = by_definition(series)
    wrong = (states != right).mean()
    together = {state: set(right[states == state].tolist()) for state in np.unique(states).tolist()}
    mixed = {state: found for state, found in together.items() if len(found) > 1}
    print(f'values from {series.min():.2f} to {series.max():.2f}: states {states.min()} to {states.max()}, where {b**n - 1} is '
          f'the last. {wrong:.0%} are wrong. Same number for different states: {mixed}')  # fmt: skip
    assert right.max() == b**n - 1, 'this has changed'
    assert (wrong == 0 and not mixed) if shift > 0 else (states.max() > b**n - 1 and wrong > 0.2 and mixed), 'this has changed'
try:
    cgss_binning(signal, n, tau, b=b, binning_method='equal_probability')
    raise AssertionError('this has changed')
except UnboundLocalError as error:
    print(f'equal_probability: UnboundLocalError: {error}')
PY
