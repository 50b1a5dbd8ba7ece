#!/usr/bin/env bash
# gudhi 3.13.0: Entropy(mode="vector") is shifted by one step against its own grid_.
#
# Expected: grid_ is documented as "the grid on which the entropy summary function is computed". At x, this function sums -p log(p) over
# the points whose interval contains x, where p is the share of the interval in the sum of all lengths.
# Seen: by default, the first and last point of the grid are dropped (keep_endpoints=False), but the entries are still counted from
# the first one. So each entry has the value of the grid point before it, and the first entry that of a point that grid_ does not
# hold. BettiCurve of the same package, on the same grid, is right. With keep_endpoints=True, Entropy is right too.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet gudhi==3.13.0 numpy==2.4.6 scipy==1.17.1 scikit-learn==1.9.1
cd "$folder"
"$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import numpy as np
from gudhi.representations import BettiCurve, Entropy

print(f'gudhi {version("gudhi")}')
diagram = np.array([[0.0, 4.0], [1.0, 2.0], [0.5, 6.0]])
share = (diagram[:, 1] - diagram[:, 0]) / (diagram[:, 1] - diagram[:, 0]).sum()
terms = -share * np.log(share)


def at(x, values):  # The sum of the values of all points whose interval contains x.
    return values[(diagram[:, 0] <= x) & (x < diagram[:, 1])].sum()


for keep in (False, True):
    entropy = Entropy(mode='vector', resolution=5, normalized=False, keep_endpoints=keep)
    curve = BettiCurve(resolution=5, keep_endpoints=keep)
    vector, betti = entropy.fit_transform([diagram])[0], curve.fit_transform([diagram])[0]
    right = np.array([at(x, terms) for x in entropy.grid_])
    print(f'keep_endpoints={keep}, grid_ {entropy.grid_.tolist()}: {vector.round(3).tolist()}, by the definition {right.round(3).tolist()}')
    assert np.allclose(entropy.grid_, curve.grid_), 'this has changed'
    assert betti.tolist() == [at(x, np.ones(3)) for x in curve.grid_], 'this has changed'
    if keep:
        assert np.allclose(vector, right), 'this has changed'
    else:
        assert not np.allclose(vector, right) and np.allclose(vector[1:], right[:-1]), 'this has changed'
PY
