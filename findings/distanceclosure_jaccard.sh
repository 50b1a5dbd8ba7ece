#!/usr/bin/env bash
# distanceclosure 0.5 with SciPy 1.17.1: the default Jaccard proximity of numbers ignores the numbers, unlike its documented example.
#
# Expected: pairwise_proximity(metric='jaccard') is a "numeric item-wise comparison", "the default and most commonly used version.
# Implemented from scipy.spatial.distance". The docstring has an example of four rows, which agree in 4, 3, 2 or 1 of four items, and its
# result. The package asks for "scipy>=1.7".
# Seen: scipy.spatial.distance.jaccard takes "array_like of bools", and takes numbers that are not zero for True, since SciPy 1.15. So all
# rows of positive numbers have the proximity 1, also those that agree nowhere. 'jaccard' is 'jaccard_binary' then. With SciPy 1.14.1 the
# example is right.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
for scipy in 1.14.1 1.17.1; do
  python3 -m venv --clear "$folder/venv"
  "$folder/venv/bin/pip" install --quiet distanceclosure==0.5 numpy==1.26.4 scipy==$scipy pandas==2.2.3 networkx==3.4.2
  (cd "$folder" && OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore -) <<'PY'
from importlib.metadata import version

import numpy as np
import scipy
from distanceclosure.distance import pairwise_proximity

print(f'distanceclosure {version("distanceclosure")}, SciPy {scipy.__version__}')
rows = np.array([[2, 3, 4, 2], [2, 3, 4, 2], [2, 3, 3, 2], [2, 1, 3, 4]])
documented = [[1, 1, 0.75, 0.25], [1, 1, 0.75, 0.25], [0.75, 0.75, 1, 0.5], [0.25, 0.25, 0.5, 1]]
seen = pairwise_proximity(rows, metric='jaccard')
far = pairwise_proximity(np.array([[1, 2, 3], [7, 8, 9]]))
print(f'the example: {seen.tolist()}, documented {documented}. Rows 1, 2, 3 and 7, 8, 9: {far[0, 1]}')
assert np.array_equal(seen, (rows[:, None] == rows).mean(2)) == (scipy.__version__ == '1.14.1'), 'this has changed'
assert np.array_equal(documented, (rows[:, None] == rows).mean(2)), 'the definition is wrong'
if scipy.__version__ != '1.14.1':
    assert np.array_equal(seen, np.ones((4, 4))) and far[0, 1] == 1, 'this has changed'
    assert np.array_equal(seen, pairwise_proximity(rows, metric='jaccard_binary')), 'this has changed'
PY
done
