#!/usr/bin/env bash
# pyclustering 0.10.1.2: the Minkowski distance of an odd degree has no absolute values, and is 0, NaN or a complex number.
#
# Expected: the Minkowski distance, (the sum of |a - b|^p)^(1 / p), which is positive for different points, and the same in both
# directions. The argument degree is any "degree of Minkowski equation".
# Seen: the differences keep their signs. With p = 3, those of (0, 1) and (1, 0) cancel out to a distance of 0. From (0, 0) to
# (1, 2), the result is complex, and in the other direction 2.08. With enable_numpy_usage(), which the algorithms call, it is
# NaN, and comparisons with it are false. With p = 1, it is not the Manhattan distance.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet pyclustering==0.10.1.2 numpy==1.23.5 scipy==1.10.1 matplotlib==3.7.5 pillow==10.4.0 \
  setuptools==80.9.0 wheel==0.45.1
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import numpy as np
from pyclustering.utils.metric import distance_metric, type_metric

print(f'pyclustering {version("pyclustering")}')
for degree in (1, 2, 3):
    metric, arrays = (distance_metric(type_metric.MINKOWSKI, degree=degree) for _ in range(2))
    arrays.enable_numpy_usage()
    for a, b in (([0.0, 1.0], [1.0, 0.0]), ([0.0, 0.0], [1.0, 2.0]), ([1.0, 2.0], [0.0, 0.0])):
        seen, array = metric(a, b), arrays(np.array(a), np.array(b))
        right = (np.abs(np.subtract(a, b)) ** degree).sum() ** (1 / degree)
        print(f'p = {degree}, {a} and {b}: {seen:.3f}, with arrays {array:.3f}, by the definition {right:.3f}')
        if degree == 2 or (degree, a) in ((1, [1.0, 2.0]), (3, [1.0, 2.0])):
            assert np.isclose(seen, right) and np.isclose(array, right), 'this has changed'
        elif a == [0.0, 1.0]:
            assert seen == array == 0 and right > 1, 'this has changed'
        elif degree == 3:
            assert isinstance(seen, complex) and np.isnan(array), 'this has changed'
        else:
            assert seen == -3 and right == 3, 'this has changed'
PY
