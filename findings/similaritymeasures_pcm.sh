#!/usr/bin/env bash
# similaritymeasures 1.5.0: the area of partial curve mapping grows with the number of points.
#
# Expected: pcm computes "the Partial Curve Mapping area" of Witowski and Stander (2012). It is the area between the curves:
# the sum of the mean distance at both ends of a segment, times the length of this segment, as part of the length of the curve.
# If all distances are 0.1, it is 0.1, and more points on the same curves do not change it.
# Seen: the distance is multiplied with the cumulative length, from the start of the curve to the end of the segment (le_sum),
# instead of the length of the segment (le). Two parallel lines of 11 points have 0.55, of 101 points 5.05, and of 1001 points
# 50.05. Parts at the end of a curve count more, so that the result changes if both curves are reversed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet similaritymeasures==1.5.0 numpy==2.4.6 scipy==1.17.1
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import numpy as np
from similaritymeasures import pcm

print(f'similaritymeasures {version("similaritymeasures")}')


def by_definition(a, b):
    """For curves of the same length: distances at equal parts of the length, after scaling both to the box of the first."""
    low, high = a.min(axis=0), a.max(axis=0)
    a, b = (a - low) / (high - low), (b - low) / (high - low)
    parts = []
    for curve in (a, b):
        steps = np.r_[0, np.sqrt((np.diff(curve, axis=0) ** 2).sum(axis=1))]
        parts.append(np.cumsum(steps) / steps.sum())
    near = np.stack([np.interp(parts[0], parts[1], b[:, k]) for k in range(2)], axis=1)
    distances = np.sqrt(((a - near) ** 2).sum(axis=1))
    return ((distances[1:] + distances[:-1]) / 2 * np.diff(parts[0])).sum()


for points in (11, 101, 1001):
    x = np.linspace(0, 1, points)
    line, other = np.stack([x, x], axis=1), np.stack([x, x + 0.1], axis=1)
    seen, right = pcm(line, other), by_definition(line, other)
    print(f'parallel lines of {points} points: {seen:.3f}, by the definition {right:.3f}')
    assert np.isclose(right, 0.1) and np.isclose(seen, 0.05 * points), 'this has changed'

x = np.linspace(0, 1, 51)
line, other = np.stack([x, x], axis=1), np.stack([x, x + 0.2 * np.exp(-20 * x)], axis=1)
seen, back = pcm(line, other), pcm(line[::-1], other[::-1])
print(f'a bump near the start: {seen:.3f}, of the reversed curves {back:.3f}')
assert back > 2 * seen, 'this has changed'
PY
