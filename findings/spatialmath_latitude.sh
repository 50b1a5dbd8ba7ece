#!/usr/bin/env bash
# spatialmath-python 1.1.18: angles wrapped to a range from -pi / 2 to pi / 2 are outside of it, from pi on.
#
# Expected: wrap_mpi2_pi2 is to "wrap angle to range [-pi/2, pi/2]", and "is used to fold angles of latitude". A latitude of 4,
# past the pole and on, is pi - 4, as the arcsine of the sine. vector_diff uses it for the mode "l", and angle_wrap for
# "-pi/2:pi/2".
# Seen: spatialmath/base/vectors.py takes n, the number of quarter turns of the angle, and subtracts n times pi, which are half
# turns. An angle from pi on is off by pi or more: 10 becomes -8.8. The number is also rounded toward 0, and not down.
# wrap_0_pi, which folds colatitudes, is right.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet numpy==2.4.6 scipy==1.17.1 matplotlib==3.11.2 ansitable==1.2.0 typing_extensions==4.16.0
"$folder/venv/bin/pip" install --quiet --no-deps spatialmath-python==1.1.18
cd "$folder"
MPLBACKEND=Agg OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import numpy as np
from spatialmath.base import angle_wrap, vector_diff, wrap_0_pi, wrap_mpi2_pi2

print(f'spatialmath-python {version("spatialmath-python")}')
for angle in (-4.0, -3.0, -1.0, 0.5, 2.0, 3.0, 3.5, 4.0, 5.0, 6.0, 10.0):
    seen, right = wrap_mpi2_pi2(angle), np.arcsin(np.sin(angle))
    print(f'{angle:5.1f}: {seen:7.4f}, by the definition {right:7.4f}')
    assert np.isclose(seen, right) == (abs(angle) < np.pi), 'this has changed'
    assert seen == angle_wrap(angle, '-pi/2:pi/2') == vector_diff([angle], [0.0], 'l')[0], 'this has changed'
    assert np.isclose(wrap_0_pi(angle), np.arccos(np.cos(angle))), 'this has changed'

angles = np.linspace(-20, 20, 4001)
outside = (abs(wrap_mpi2_pi2(angles)) > np.pi / 2 + 1e-9).mean()
print(f'of 4001 angles from -20 to 20, {outside:.0%} are outside of the range')
assert outside > 0.7, 'this has changed'
PY
