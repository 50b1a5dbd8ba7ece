#!/usr/bin/env bash
# mapclassify 2.10.0: Percentiles without 100 puts the largest values into the lowest class.
#
# Expected: pct are percentiles, "bins" the upper bounds of classes, and "counts" the numbers of observations in each. Values
# above the last bin are above it, in a class of their own, as UserDefined and StdMean add one for them, or in the last class,
# as find_bin of the same object says. They are not between the lowest value and the first percentile.
# Seen: with pct=[25, 50, 75], the highest quarter of the values has class 0, as the lowest one. The table says that half of
# the values are up to the first quartile.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet mapclassify==2.10.0 numpy==2.4.6 scipy==1.17.1 pandas==3.1.1 networkx==3.6.1 \
    scikit-learn==1.8.0
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import numpy as np
from mapclassify import Percentiles, StdMean, UserDefined

print(f'mapclassify {version("mapclassify")}')
values = np.random.default_rng(0).permutation(np.arange(1.0, 101.0))
cuts = np.percentile(values, [25, 50, 75])
seen = Percentiles(values, pct=[25, 50, 75])
assert np.allclose(seen.bins, cuts)
right = np.searchsorted(cuts, values)
print(f'Percentiles: bins {seen.bins}, counts {seen.counts}. By the definition {np.bincount(right)}. Classes of '
      f'1, 60 and 100: {[int(seen.yb[values == v][0]) for v in (1, 60, 100)]}, '
      f'find_bin {seen.find_bin([1, 60, 100])}')  # fmt: skip
for name, other in (('UserDefined with the same bins', UserDefined(values, bins=cuts)),
                    ('StdMean', StdMean(values, multiples=[-1, 0, 1])),
                    ('Percentiles with 100', Percentiles(values, pct=[25, 50, 75, 100]))):  # fmt: skip
    print(f'{name}: counts {other.counts}, class of the value 100: {other.yb[values == 100][0]} of 0 to {other.k - 1}')
    assert other.yb[values == 100][0] == other.k - 1
assert seen.counts.tolist() == [50, 25, 25] and (seen.yb[values > cuts[-1]] == 0).all(), 'this has changed'
assert (seen.find_bin(values)[values > cuts[-1]] == 2).all() and np.bincount(right).tolist() == [25] * 4
PY
