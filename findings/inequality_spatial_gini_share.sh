#!/usr/bin/env bash
# inequality 1.1.2: wcg_share of Gini_Spatial is no share of the inequality, and is at most the Gini coefficient.
#
# Expected: wcg_share is the "share of inequality in non-neighbor component" (documentation): wcg of wcg + wg. It is 1 if neighbours are
# equal, and the shares of both components sum to 1.
# Seen: wcg is divided by 2 * n^2 * mean, which turns a sum of differences into a Gini coefficient. The result is the part of the Gini
# coefficient, not the share of it. It is never above the coefficient, and says that less than half is between distant pairs where all of
# it is. The components wg and wcg are right.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet inequality==1.1.2 libpysal==4.14.1 numpy==2.4.6 scipy==1.17.1 pandas==3.1.1 \
  matplotlib==3.11.2 geopandas==1.2.0
cd "$folder"
MPLBACKEND=Agg "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import numpy as np
from inequality.gini import Gini_Spatial
from libpysal.weights import W

print(f'inequality {version("inequality")}')
w = W({0: [1], 1: [0], 2: [3], 3: [2], 4: [5], 5: [4]}, silence_warnings=True)
near = w.full()[0] > 0
incomes = {'neighbours are equal': [1, 1, 2, 2, 6, 6], 'neighbours differ': [1, 6, 2, 5, 3, 4], 'in between': [1, 2, 3, 4, 5, 6]}
for name, x in incomes.items():
    x = np.array(x, dtype=float)
    differences = np.abs(np.subtract.outer(x, x))
    gini = differences.sum() / (2 * len(x) ** 2 * x.mean())
    right = differences[~near].sum() / differences.sum()
    seen = Gini_Spatial(x, w, permutations=9)
    print(f'{name}: Gini coefficient {seen.g:.3f}, wg {seen.wg:.0f}, wcg {seen.wcg:.0f}, '
          f'wcg_share {seen.wcg_share:.3f}, by the definition {right:.3f}')  # fmt: skip
    assert np.allclose([seen.g, seen.wg, seen.wcg], [gini, differences[near].sum(), differences[~near].sum()]), 'this has changed'
    assert np.isclose(seen.wcg_share, right * gini) and seen.wcg_share < right - 0.3, 'this has changed'
PY
