#!/usr/bin/env bash
# filterpy 2.0.0: the cubature Kalman filter leaves process noise out of its measurement step.
#
# Expected: CubatureKalmanFilter is the filter "as defined by Ienkaran Arasaratnam and Simon Haykin" (2009). There, the
# measurement step draws new cubature points of the predicted state and covariance, which has the process noise Q. For a linear
# model, the filter is the Kalman filter.
# Seen: update takes the points of predict, which were moved before Q was added. So S is H F P F^T H^T + R, without H Q H^T,
# and the cross covariance lacks Q, too. The state has too small gains. UnscentedKalmanFilter draws new points, and agrees with
# KalmanFilter.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet filterpy==2.0.0 numpy==2.4.6 scipy==1.17.1
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import numpy as np
from filterpy.kalman import CubatureKalmanFilter, KalmanFilter, MerweScaledSigmaPoints, UnscentedKalmanFilter

print(f'filterpy {version("filterpy")}')
F, H, R = np.array([[1.0, 1], [0, 1]]), np.array([[1.0, 0]]), np.array([[2.0]])
for Q in (np.zeros((2, 2)), np.array([[3.0, 1.0], [1.0, 2.0]])):
    kalman = KalmanFilter(2, 1)
    kalman.F, kalman.H = F, H
    cubature = CubatureKalmanFilter(2, 1, 1.0, hx=lambda x: H @ x, fx=lambda x, dt: F @ x)
    points = MerweScaledSigmaPoints(2, alpha=0.5, beta=2.0, kappa=1.0)
    unscented = UnscentedKalmanFilter(2, 1, 1.0, hx=lambda x: H @ x, fx=lambda x, dt: F @ x, points=points)
    for one in (kalman, cubature, unscented):
        one.Q, one.R = Q, R
    print(f'Q {Q.tolist()}')
    for step, z in enumerate((-2.2, 3.3, -0.9, 4.4)):
        before = cubature.P.copy()
        for one in (kalman, cubature, unscented):
            one.predict()
            one.update(np.array([z]) if one is unscented else np.array([[z]]))
        print(f'  z {z}: x {np.ravel(cubature.x).round(3)}, S {cubature.S.item():.3f}. Unscented: {unscented.x.round(3)}, '
              f'{unscented.S.item():.3f}. Kalman: {np.ravel(kalman.x).round(3)}, {kalman.S.item():.3f}')  # fmt: skip
        assert np.allclose(unscented.x, np.ravel(kalman.x)) and np.allclose(unscented.S, kalman.S)
        assert np.allclose(cubature.S, H @ F @ before @ F.T @ H.T + R), 'this has changed'
        assert np.allclose(cubature.x, kalman.x) == (Q == 0).all(), 'this has changed'
PY
