#!/usr/bin/env bash
# filterpy 2.0.0: the covariance of MMAEFilterBank leaves out filters, as it loops over the entries of the state.
#
# Expected: x of MMAEFilterBank is the mean of the states of the filters, weighted by their probabilities. P is the "current
# state covariance matrix": the sum of p (P_f + (x_f - x) (x_f - x)^T) over all filters, the covariance of this mixture.
# Seen: update zips the entries of x, the filters and the probabilities. With a state of one number and three filters, only the
# first filter counts: P is 0.27, and 0.97 is right. If there are two states and two filters, the first filter is compared with
# the first entry of x, and the second filter with the second entry.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet filterpy==2.0.0 numpy==2.4.6 scipy==1.17.1
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import numpy as np
from filterpy.kalman import KalmanFilter, MMAEFilterBank

print(f'filterpy {version("filterpy")}')


def make(state, variance):
    kalman = KalmanFilter(len(state), 1)
    kalman.x, kalman.P = np.array(state), variance * np.eye(len(state))
    kalman.H, kalman.Q = np.eye(1, len(state)), np.zeros((len(state), len(state)))
    return kalman


for filters in (
    [make([0.0], 1), make([1.0], 2), make([5.0], 3)],
    [make([0.0, 8.0], 1), make([1.0, 9.0], 2)],
    [make([0.0, 8.0], 1), make([1.0, 9.0], 2), make([5.0, 7.0], 1)],
):
    n = len(filters[0].x)
    bank = MMAEFilterBank(filters, [1 / len(filters)] * len(filters), n, H=np.eye(1, n))
    bank.predict()
    bank.update(np.array([2.0]))
    mean = sum(p * one.x for p, one in zip(bank.p, filters))
    right = sum(p * (one.P + np.outer(one.x - mean, one.x - mean)) for p, one in zip(bank.p, filters))
    pairs = zip(bank.x, filters, bank.p)
    wrong = sum(p * (one.P + np.outer(one.x - entry, one.x - entry)) for entry, one, p in pairs)
    print(f'{len(filters)} filters, p {bank.p.round(3)}, x {bank.x.round(3)}: P {bank.P.round(3).tolist()}, '
          f'by the definition {right.round(3).tolist()}')  # fmt: skip
    assert np.allclose(bank.x, mean) and np.allclose(bank.P, wrong) and not np.allclose(bank.P, right), 'this has changed'
PY
