#!/usr/bin/env bash
# pymcdm 1.4.0: COPRAS adds costs to the score instead of penalizing them, so that the best alternative can rank last.
#
# Expected: COPRAS of the cited Zavadskas et al. (1994, 2007) has Q_i = S+_i + min(S-) sum(S-) / (S-_i sum(min(S-) / S-)), with
# the sums over the alternatives. A larger sum S-_i of minimizing criteria lowers Q_i. An alternative that is best in all
# criteria has the largest Q.
# Seen: the sums over the alternatives are missing. The second term is min(S-) S-_i / (S-_i min(S-) / S-_i), which is S-_i. So
# cost criteria count as profits. With equal profits, the most expensive alternative ranks first, and the cheapest last.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet pymcdm==1.4.0 numpy==2.4.6 scipy==1.17.1 matplotlib==3.11.2
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import numpy as np
from pymcdm.methods import COPRAS, TOPSIS

print(f'pymcdm {version("pymcdm")}')


def by_definition(matrix, weights, types):
    weighted = matrix / matrix.sum(0) * weights
    profit, cost = weighted[:, types == 1].sum(1), weighted[:, types == -1].sum(1)
    result = profit + cost.min() * cost.sum() / (cost * (cost.min() / cost).sum())
    return result / result.max()


rng = np.random.default_rng(0)
best_last = rng.uniform(2, 10, (6, 4))
best_last[3] = 10.0, 1.0, 1.0, 1.0  # the best in all criteria
for name, matrix, weights, types in (
    ('quality 10, 10, 10 and price 5, 1, 3', np.array([[10.0, 5], [10, 1], [10, 3]]), np.array([0.5, 0.5]), np.array([1, -1])),
    ('the fourth is best in all', best_last, np.array([0.1, 0.3, 0.3, 0.3]), np.array([1, -1, -1, -1])),
):
    method = COPRAS()
    seen, right = method(matrix, weights, types), by_definition(matrix, weights, types)
    topsis = TOPSIS()(matrix, weights, types)
    ranks, right_ranks = method.rank(seen), method.rank(right)
    print(f'{name}: COPRAS ranks {ranks.astype(int)}, by the equation {right_ranks.astype(int)}, '
          f'TOPSIS {method.rank(topsis).astype(int)}')  # fmt: skip
    weighted = matrix / matrix.sum(0) * weights
    best = 1 if len(matrix) == 3 else 3
    assert right.argmax() == topsis.argmax() == best
    assert np.allclose(seen, weighted.sum(1) / weighted.sum(1).max()), 'this has changed'
    assert seen.argmin() == best, 'this has changed'
PY
