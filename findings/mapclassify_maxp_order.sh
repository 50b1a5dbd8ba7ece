#!/usr/bin/env bash
# mapclassify 2.10.0: MaxP takes positions among the sorted values for positions in the data, and depends on the order of rows.
#
# Expected: the classes of values of a map do not depend on the order of the values. MaxP swaps values between neighboring
# classes as long as the sum of squared differences from the class means gets smaller.
# Seen: classes are lists of positions among the sorted values. Sums of squares are of self.y at these positions, which is not
# sorted. So swaps are kept or not by values of other observations. Each order of the same values has other bins, and the sum
# of squares of the classes is often larger than that of sorted data.
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
from mapclassify import MaxP, NaturalBreaks

print(f'mapclassify {version("mapclassify")}')
rng = np.random.default_rng(0)
values = np.sort(np.exp(rng.normal(size=40)))


def squares(bins):
    labels = np.searchsorted(bins, values)
    return sum(((values[labels == k] - values[labels == k].mean()) ** 2).sum() for k in np.unique(labels))


results = {'MaxP': [], 'NaturalBreaks': []}
orders = [np.arange(40), np.arange(40)[::-1]] + [rng.permutation(40) for _ in range(6)]
for order in orders:
    for kind in (MaxP, NaturalBreaks):
        bins = kind(values[order], k=5, initial=50).bins
        results[kind.__name__].append(bins)
    print(f'order {str(order[:4])[:-1]} ...]: MaxP {results["MaxP"][-1].round(2)}, sum of squares '
          f'{squares(results["MaxP"][-1]):.2f}. NaturalBreaks {bins.round(2)}, {squares(bins):.2f}')  # fmt: skip
assert np.ptp(results['NaturalBreaks'], axis=0).max() == 0
assert len({tuple(bins) for bins in results['MaxP']}) > 4, 'this has changed'
sums = [squares(bins) for bins in results['MaxP']]
assert max(sums) > 2 * sums[0], 'this has changed'
PY
