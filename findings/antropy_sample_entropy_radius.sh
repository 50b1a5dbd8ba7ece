#!/usr/bin/env bash
# antropy 0.2.3: the sample entropy of 5000 whole numbers is about half of that of 4999, as it counts distances equal to r.
#
# Expected: the sample entropy counts pairs of vectors with a Chebyshev distance "less than r" (docstring). Up to 4999 values
# are counted by a loop, others with a KDTree: "Both code paths should produce equivalent results".
# Seen: the loop counts distances below the tolerance, as the docstring says. KDTree.query_radius also counts distances that are
# equal to it. Of whole numbers, as heart beats in milliseconds or steps of a converter, many distances are equal: one more
# value turns 2.30 into 1.28. Another metric takes the KDTree for short series, too. app_entropy always counts equal distances,
# as its paper does.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet antropy==0.2.3 numpy==2.4.6 scipy==1.17.1 scikit-learn==1.8.0 numba==0.68.1
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import numpy as np
from antropy import sample_entropy

print(f'antropy {version("antropy")}')
rng = np.random.default_rng(0)


def by_definition(x, tolerance, within):
    """Of the pairs of vectors of two values that are near, the share that is near with a third, as a logarithm."""
    n = len(x) - 2
    near = np.zeros(2, dtype=np.int64)
    for i in range(n - 1):
        distances = np.abs(x[i : i + 3] - np.lib.stride_tricks.sliding_window_view(x[i + 1 :], 3))
        for count in (2, 3):
            largest = distances[:, :count].max(1)
            near[count - 2] += within(largest, tolerance).sum()
    return -np.log(near[1] / near[0])


x = rng.integers(0, 10, 5000).astype(float)
for tolerance in (1.0, 2.0, 1.5):
    short, long = sample_entropy(x[:-1], tolerance=tolerance), sample_entropy(x, tolerance=tolerance)
    below, equal = (by_definition(x, tolerance, within) for within in (np.less, np.less_equal))
    print(f'tolerance {tolerance}: 4999 values {short:.4f}, 5000 values {long:.4f}. By the definition for 5000 values, '
          f'distances less than the tolerance {below:.4f}, or equal {equal:.4f}')  # fmt: skip
    assert abs(short - below) < 0.01 and np.isclose(long, equal), 'this has changed'
    assert (abs(short - long) > 0.3) == (tolerance % 1 == 0), 'this has changed'
PY
