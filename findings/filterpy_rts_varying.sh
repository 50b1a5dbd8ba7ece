#!/usr/bin/env bash
# filterpy 2.0.0: the function rts_smoother takes the matrices of the wrong step, unlike the method of this name.
#
# Expected: filterpy.kalman.rts_smoother "runs the Rauch-Tung-Striebel Kalman smoother on a set of means and covariances
# computed by a Kalman filter. The usual input would come from the output of KalmanFilter.batch_filter()". Fs and Qs are those
# "at each time step". batch_filter predicts with Fs[k] and Qs[k] before the update of step k. So the step from k to k + 1 is
# that of Fs[k + 1]. The method KalmanFilter.rts_smoother, with the same documentation, does that.
# Seen: the function takes Fs[k] and Qs[k]. If these vary, smoothed means and covariances are wrong. The method agrees with the
# conditional distribution of all states given all measurements.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet filterpy==2.0.0 numpy==2.4.6 scipy==1.17.1
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import numpy as np
from filterpy.kalman import KalmanFilter, batch_filter, rts_smoother

print(f'filterpy {version("filterpy")}')
rng, n = np.random.default_rng(0), 6
Fs = [np.array([[value]]) for value in (1.0, 0.5, 2.0, 1.0, 0.8, 1.5)]
Qs = [np.array([[value]]) for value in (1.0, 0.2, 3.0, 0.5, 2.0, 0.1)]
H, R, zs = np.eye(1), np.eye(1), [np.array([z]) for z in rng.normal(0, 3, n)]

# All states are linear in the first state and the noises, so their joint distribution is known.
maps = np.zeros((n, n + 1))
row = np.eye(1, n + 1)[0]
for k in range(n):
    row = Fs[k].item() * row
    row[k + 1] = 1
    maps[k] = row
prior = maps @ np.diag([1.0, *(q.item() for q in Qs)]) @ maps.T
gain = prior @ np.linalg.inv(prior + np.eye(n))
right, variances = gain @ np.ravel(zs), np.diag(prior - gain @ prior)

kalman = KalmanFilter(1, 1)
kalman.x, kalman.P, kalman.H, kalman.R = np.zeros(1), np.eye(1), H, R
means, covariances, _, _ = kalman.batch_filter(zs, Fs=Fs, Qs=Qs)
others = batch_filter(np.zeros(1), np.eye(1), zs, Fs, Qs, [H] * n, [R] * n)
assert np.allclose(means, others[0]) and np.allclose(covariances, others[1])
method = kalman.rts_smoother(means, covariances, Fs=Fs, Qs=Qs)
function = rts_smoother(means, covariances, Fs, Qs)
for name, result in (('method', method), ('function', function)):
    print(f'{name}: means {np.ravel(result[0]).round(3)}, variances {np.ravel(result[1]).round(3)}')
print(f'by the definition: means {right.round(3)}, variances {variances.round(3)}')
assert np.allclose(np.ravel(method[0]), right) and np.allclose(np.ravel(method[1]), variances)
assert np.abs(np.ravel(function[0]) - right).max() > 0.3, 'this has changed'
same = rts_smoother(means, covariances, [*Fs[1:], Fs[0]], [*Qs[1:], Qs[0]])
assert np.allclose(np.ravel(same[0]), right), 'this has changed'
PY
