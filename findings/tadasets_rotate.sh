#!/usr/bin/env bash
# tadasets 0.2.2: rotate_2D does not rotate, but mirrors: for the angle 0, each point is upside down.
#
# Expected: rotate_2D(points, angle) rotates them around 0 by an angle in radians, and infty_sign(angle=angle) its points. The angle 0, or
# one of 2 pi, changes nothing. Two rotations by 1 are one by 2. A rotation has determinant 1.
# Seen: the angle of a point is measured from the second axis, clockwise, and is then taken for one from the first axis. The result is
# the rotation by the angle of the mirrored points: the determinant is -1, rotating twice gives the points one began with, and infty_sign
# runs backwards with angle=0. The sign is its own mirror image, so that a plot of it looks right. Other figures do not.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet tadasets==0.2.2 numpy==2.4.6 matplotlib==3.11.2
cd "$folder"
"$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import numpy as np
import tadasets
from tadasets.rotate import rotate_2D

print(f'tadasets {version("tadasets")}')
unit = np.eye(2)
for angle in (0.0, 0.5, np.pi / 2, 2 * np.pi):
    right = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])  # Rows: the images of (1, 0) and (0, 1).
    seen = rotate_2D(unit, angle)
    print(f'angle {angle:.2f}: (1, 0) to {seen[0].round(2)}, (0, 1) to {seen[1].round(2)}, determinant {np.linalg.det(seen):.0f}. '
          f'By the definition {right[0].round(2)} and {right[1].round(2)}')  # fmt: skip
    assert np.allclose(seen, right * [[1], [-1]]) and np.isclose(np.linalg.det(right), 1), 'this has changed'

letter = np.array([[0, 0], [0, 1], [0, 2], [1, 2], [0, 1], [0.7, 1.0]])  # The letter F.
twice = rotate_2D(rotate_2D(letter, 1.0), 1.0)
print(f'F, rotated twice by 1: the same as before {np.allclose(twice, letter)}, as once by 2 {np.allclose(twice, rotate_2D(letter, 2.0))}')
assert np.allclose(twice, letter), 'this has changed'
plain, zero = tadasets.infty_sign(n=8), tadasets.infty_sign(n=8, angle=0.0)
print(f'infty_sign, point 1: {plain[1].round(2)}, with angle=0 {zero[1].round(2)}')
assert np.allclose(zero, plain * [1, -1]) and not np.allclose(zero, plain), 'this has changed'
PY
