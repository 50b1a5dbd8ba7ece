#!/usr/bin/env bash
# mapclassify 2.10.0: JenksCaspallForced moves the last or first observation of a class, and not the largest or smallest value.
#
# Expected: "Jenks Caspall Map Classification with forced movements". The largest value of a class is moved to the next class,
# or the smallest to the one before, if the sum of squared differences from class means gets smaller. So classes are intervals,
# and the order of the data does not count.
# Seen: the mover is max(ids) or min(ids) of the indices of the class, which is the largest or smallest value only if data are
# sorted. For other orders, an inner value is tried, the search stops early, and bins remain at quantiles or between.
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
from mapclassify import JenksCaspall, JenksCaspallForced

print(f'mapclassify {version("mapclassify")}')
rng = np.random.default_rng(0)
values = np.sort(np.exp(rng.normal(size=40)))


def by_definition(number):  # forced moves of the values at the ends, on sorted values, from quantiles
    cuts = list(np.searchsorted(values, np.quantile(values, np.arange(1, number) / number), side='right'))

    def squares(cuts):
        return sum(((part - part.mean()) ** 2).sum() for part in np.split(values, cuts))

    improved = True
    while improved:
        improved = False
        for i in range(len(cuts)):
            for step in (-1, 1):
                other = cuts[:i] + [cuts[i] + step] + cuts[i + 1 :]
                if min(np.diff([0, *other, len(values)])) > 0 and squares(other) < squares(cuts):
                    cuts, improved = other, True
    return np.array([part[-1] for part in np.split(values, cuts)]), squares(cuts)


right, least = by_definition(5)
print(f'by the definition {right.round(2)}, sum of squares {least:.2f}')
sums = []
for order in (np.arange(40), np.arange(40)[::-1], rng.permutation(40), rng.permutation(40)):
    result = JenksCaspallForced(values[order], k=5)
    sums.append(result.get_tss())
    plain = JenksCaspall(values[order], k=5)
    print(f'order {str(order[:4])[:-1]} ...]: {result.bins.round(2)}, sum of squares {sums[-1]:.2f}. '
          f'Without forced moves {plain.bins.round(2)}, {plain.get_tss():.2f}')  # fmt: skip
    assert np.allclose(plain.bins, JenksCaspall(values, k=5).bins)
assert np.isclose(sums[0], least) and min(sums[1:]) > 2 * least, 'this has changed'
PY
