#!/usr/bin/env bash
# filterpy 2.0.0: the likelihood of the information filter takes the inverse covariance of the state for that of the residual.
#
# Expected: InformationFilter has attributes S, "system uncertainty projected to measurement space", and log_likelihood, the
# "log-likelihood of the last measurement". The filter is the Kalman filter, stated with inverses. So S is H P H^T + R, and the
# log-likelihood is log N(y; 0, S), as that of KalmanFilter.
# Seen: S is P_inv + H^T R_inv H, the new inverse covariance of the state. It has a row for each state. log_likelihood uses it
# as the covariance of the residual. If dim_z is 1, the residual is repeated for each state, and no error is raised. States
# agree with those of KalmanFilter, but log-likelihoods are -16.6 instead of -2.4, and -24.2 instead of -2.5.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet filterpy==2.0.0 numpy==2.4.6 scipy==1.17.1
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import numpy as np
from filterpy.kalman import InformationFilter, KalmanFilter

print(f'filterpy {version("filterpy")}')
f, h, q, r = np.array([[1, 1], [0, 1]]), np.array([[1, 0]]), np.array([[0.3, 0.1], [0.1, 0.2]]), np.array([[2.0]])
kalman, information = KalmanFilter(2, 1), InformationFilter(2, 1)
for one in (kalman, information):
    one.F, one.H, one.Q = f.astype(float), h.astype(float), q
kalman.R, kalman.P, information.R_inv, information.P_inv = r, 5 * np.eye(2), np.linalg.inv(r), np.eye(2) / 5
for z in (-2.2, 0.3, -0.9, 0.4):
    for one in (kalman, information):
        one.predict()
        prior = one.P.copy(), one.x.copy()
        one.update(np.array([[z]]))
    s, y = (h @ prior[0] @ h.T + r).item(), z - (h @ prior[1]).item()
    right = -0.5 * (np.log(2 * np.pi * s) + y**2 / s)
    print(f'z {z}: S of shape {information.S.shape}, by the definition {s:.3f}. Log-likelihood '
          f'{information.log_likelihood:.3f}, of KalmanFilter {kalman.log_likelihood:.3f}, by the definition {right:.3f}')
    assert np.allclose(kalman.x, information.x) and np.allclose(kalman.P, information.P)
    assert np.isclose(kalman.log_likelihood, right) and np.isclose(kalman.S.item(), s)
    assert information.S.shape == (2, 2) and np.allclose(information.S, information.P_inv), 'this has changed'
    assert information.log_likelihood < right - 0.1, 'this has changed'
PY
