#!/usr/bin/env bash
# kmapper 2.1.0: Cover(limits=...) with infinite limits is right once: of the next data, all points are lost.
#
# Expected: "if a value is set to float('inf'), the bound will be assumed to be the min/max value of the dimension", at each fit. A
# warning says if limits "do not cover the entire range".
# Seen: the first fit replaces infinite limits by 0 in the cover itself, and later ones take 0 as the limit. If both were infinite, all
# cubes are the point 0. A cover used for two data sets, or twice for the same one, then has no points, and there is no error. The warning
# only comes if limits are too narrow on both sides: points beyond one side are lost without a word.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet kmapper==2.1.0 scikit-learn==1.9.1 numpy==2.4.6 scipy==1.17.1 Jinja2==3.1.6
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" - <<'PY'
import warnings
from importlib.metadata import version

import kmapper
import numpy as np

print(f'kmapper {version("kmapper")}')
values = np.linspace(5, 9, 41)
data = np.column_stack((np.arange(41), values))  # The first column is an index.


def covered(cover):
    """How many points are in any cube."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter('always')
        cubes = cover.fit_transform(data)
    points = {int(row[0]) for cube in cubes for row in cube}
    return len(points), any('do not cover' in str(w.message) for w in found)


for limits in ([[np.inf, np.inf]], [[5.0, np.inf]], [[np.inf, 9.0]], None, [[5.0, 9.0]]):
    cover = kmapper.Cover(n_cubes=4, perc_overlap=0.2, limits=limits)
    counts = [covered(cover) for _ in range(3)]
    bounds = [float(side[0]) for side in cover.bounds_]
    print(f'limits {limits}: points in the cubes of the first, second and third fit of the same data {[c for c, _ in counts]}, '
          f'expected [41, 41, 41], bounds of the last {bounds}')  # fmt: skip
    assert counts[0] == (41, False), 'this has changed'
    infinite = limits is not None and np.isinf(limits).any()
    right = limits is None or bounds == [5.0, 9.0]
    assert right != infinite, 'this has changed'
    if infinite:
        again = 41 if limits == [[np.inf, 9.0]] else 0
        assert counts[1][0] == counts[2][0] == again, 'this has changed'
    else:
        assert counts == [(41, False)] * 3, 'this has changed'

for limits in ([[5.0, 7.0]], [[7.0, 9.0]], [[6.0, 8.0]]):
    count, warned = covered(kmapper.Cover(n_cubes=4, perc_overlap=0.2, limits=limits))
    inside = int(((values >= limits[0][0]) & (values <= limits[0][1])).sum())
    print(f'limits {limits}, {inside} of 41 points inside: {count} in cubes, warning {warned}, expected True')
    assert count < 41 and warned == (limits == [[6.0, 8.0]]), 'this has changed'
PY
