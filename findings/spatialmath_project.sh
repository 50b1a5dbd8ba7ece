#!/usr/bin/env bash
# spatialmath-python 1.1.18: project is wrong for vectors of a length other than 1, and so is orthogonalize.
#
# Expected: project(v1, v2) is the "vector projection of v1 onto v2", which does not depend on the length of v2. orthogonalize
# is the "nearest vector to v1 that is orthogonal to v2" (docstrings, spatialmath.base). Nothing asks for unit vectors.
# Seen: the projection is dot(v1, v2) * v2, without the division by dot(v2, v2). It is too long by the square of the length of
# v2. orthogonalize takes it off from v1, and the result is orthogonal to v2 for a length of 1 only. For a length of 2, it is at
# an angle of 176 degrees.
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
from spatialmath.base import orthogonalize, project

print(f'spatialmath-python {version("spatialmath-python")}')
first, direction = np.array([1.0, 2, 3]), np.array([1.0, 2, 2]) / 3
for length in (0.5, 1.0, 2.0, 10.0):
    second = length * direction
    right = np.linalg.lstsq(second[:, None], first)[0] * second  # The nearest point of the line.
    seen, orthogonal = project(first, second), orthogonalize(first, second)
    angle = np.degrees(np.arccos(orthogonal @ direction))
    print(f'length {length}: projection {seen.round(3)}, by the definition {right.round(3)}. Orthogonalized, the '
          f'angle is {angle:.1f} degrees')  # fmt: skip
    assert np.allclose(seen, right * length**2) and np.isclose(angle, 90) == (length == 1), 'this has changed'
    again = project(seen, second)
    assert np.allclose(again, seen) == (length == 1), 'this has changed'
PY
