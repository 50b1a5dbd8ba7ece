#!/usr/bin/env bash
# filterpy 2.0.0: the smoother of the unscented Kalman filter ignores Qs, and takes the time step before that of the filter.
#
# Expected: Qs of UnscentedKalmanFilter.rts_smoother is the "process noise of the Kalman filter at each time step. Optional, if
# not provided the filter's self.Q will be used". dts has the time steps, as in batch_filter, which predicts with dts[k] before
# the update of step k. For a linear model, all is as for KalmanFilter, so its smoother has the right values.
# Seen: Qs is never used: results are the same for any Qs. The step from k to k + 1 is made with dts[k], and the filter made it
# with dts[k + 1]. So smoothed states are wrong, if time steps vary.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet filterpy==2.0.0 numpy==2.4.6 scipy==1.17.1
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import numpy as np
from filterpy.kalman import KalmanFilter, MerweScaledSigmaPoints, UnscentedKalmanFilter

print(f'filterpy {version("filterpy")}')
rng, n = np.random.default_rng(0), 6
h, r, zs = np.array([[1.0, 0]]), np.eye(1), rng.normal(0, 3, n)
Q = np.array([[0.3, 0.1], [0.1, 0.2]])


def transition(dt):
    return np.array([[1, dt], [0, 1]])


def run(dts, Qs):
    points = MerweScaledSigmaPoints(2, alpha=0.5, beta=2.0, kappa=1.0)
    ukf = UnscentedKalmanFilter(2, 1, 1.0, hx=lambda x: h @ x, fx=lambda x, dt: transition(dt) @ x, points=points)
    ukf.R, ukf.P = r, np.eye(2)
    means, covariances = [], []
    for z, dt, q in zip(zs, dts, Qs):
        ukf.Q = q
        ukf.predict(dt=dt)
        ukf.update(np.array([z]))
        means.append(ukf.x)
        covariances.append(ukf.P)
    ukf.Q = Q
    seen = ukf.rts_smoother(np.stack(means), np.stack(covariances), Qs=Qs, dts=dts)[0]
    other = ukf.rts_smoother(np.stack(means), np.stack(covariances), Qs=[1000 * q for q in Qs], dts=dts)[0]
    later = ukf.rts_smoother(np.stack(means), np.stack(covariances), Qs=Qs, dts=[*dts[1:], 1.0])[0]
    kalman = KalmanFilter(2, 1)
    kalman.x, kalman.P, kalman.H, kalman.R = np.zeros(2), np.eye(2), h, r
    Fs = [transition(dt) for dt in dts]
    right, covariance, _, _ = kalman.batch_filter(zs.reshape(n, 1), Fs=Fs, Qs=Qs)
    assert np.allclose(right, means) and np.allclose(covariance, covariances)  # both filters agree
    return seen, other, later, kalman.rts_smoother(right, covariance, Fs=Fs, Qs=Qs)[0]


for name, dts, Qs in (
    ('all steps equal', [1.0] * n, [Q] * n),
    ('noise varies', [1.0] * n, [Q, 5 * Q, 0.2 * Q, 3 * Q, 0.1 * Q, 4 * Q]),
    ('time steps vary', [1.0, 0.3, 2.0, 0.5, 3.0, 1.0], [Q] * n),
):
    seen, other, later, right = run(dts, Qs)
    print(f'{name}: positions {seen[:, 0].round(3)}, of the Kalman smoother {right[:, 0].round(3)}. '
          f'With Qs of 1000 times: {other[:, 0].round(3)}')  # fmt: skip
    assert np.allclose(seen, right) == (name == 'all steps equal'), 'this has changed'
    assert np.allclose(seen, other), 'this has changed'
    assert name == 'noise varies' or np.allclose(later, right), 'this has changed'
PY
