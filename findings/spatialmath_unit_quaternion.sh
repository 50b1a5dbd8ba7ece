#!/usr/bin/env bash
# spatialmath-python 1.1.18: qisunit is true for the quaternion of zeros, and false for all unit quaternions.
#
# Expected: qisunit is to "test if quaternion has unit length", within a tolerance (docstring). The result of qunit, "a unit
# quaternion", passes the test.
# Seen: spatialmath/base/quaternions.py calls iszerovec, the test for a vector of zeros, where isunitvec is the right one. The
# test is false for each unit quaternion, and true for zeros, which are no rotation.
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
from spatialmath.base import isunitvec, qisunit, qunit, r2q, rotx

print(f'spatialmath-python {version("spatialmath-python")}')
rng = np.random.default_rng(0)
cases = {
    'identity': np.array([1.0, 0, 0, 0]),
    'half, half, half, half': np.full(4, 0.5),
    'of a rotation about x': r2q(rotx(0.3)),
    'a random one, by qunit': qunit(rng.normal(size=4)),
    'length 3': np.array([0, 3.0, 0, 0]),
    'zeros': np.zeros(4),
}
for name, quaternion in cases.items():
    right = abs(np.sqrt((quaternion**2).sum()) - 1) < 1e-12
    print(f'{name}: qisunit {qisunit(quaternion)}, isunitvec {isunitvec(quaternion)}, by the definition {right}')
    assert qisunit(quaternion) == (name == 'zeros') and isunitvec(quaternion) == right, 'this has changed'
PY
