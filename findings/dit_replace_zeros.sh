#!/usr/bin/env bash
# dit 2.3: replace_zeros of several distributions shrinks each by the replacements of all, so that they do not sum to 1.
#
# Expected: pmf has the "shape (n,) or (k, n), the distribution or k distributions living on the (n-1)-simplex". By the
# documented formula, which preserves "the ratios of nonzero elements", zeros become delta and others are multiplied by 1 minus
# the sum of the replacements of this distribution. The result sums to 1, and a distribution without zeros is unchanged.
# Seen: the sum is over the replacements in all rows. So each row sums to less than 1, also one without zeros. With 100 rows and
# delta = 0.01, the factor is 1 - 100 * 0.01 = 0 if each has one zero, and all other probabilities are lost. With more rows,
# probabilities are negative.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet dit==2.3 numpy==2.4.6 scipy==1.17.1 networkx==3.6.1 pandas==3.1.1 xarray==2026.9.0 \
  boltons==26.2.0 debtcollector==3.1.0 lattices==0.5.1 loguru==0.7.3 PLTable==1.1.0
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import numpy as np
from dit.math.pmfops import replace_zeros

print(f'dit {version("dit")}')


def by_definition(pmf, delta):
    zero = pmf == 0
    return np.where(zero, delta, pmf * (1 - delta * zero.sum(-1, keepdims=True)))


rng = np.random.default_rng(0)
rows = np.array([[0.25, 0.75, 0.0], [0.5, 0.0, 0.5], [0.2, 0.3, 0.5]])
many = rng.dirichlet(np.ones(3), 200)
many[:, 2] = 0
many /= many.sum(1, keepdims=True)
for name, pmf in (('one distribution', rows[:1]), ('three distributions', rows), ('200 distributions', many)):
    right, seen = by_definition(pmf, 0.01), replace_zeros(pmf, 0.01, rand=False)
    alone = np.array([replace_zeros(row, 0.01, rand=False) for row in pmf])
    print(f'{name}: sums {seen.sum(1)[:3].round(4)}, one by one {alone.sum(1)[:3].round(4)}, first row {seen[0].round(4)}, '
          f'right {right[0].round(4)}')  # fmt: skip
    assert np.allclose(alone, right) and np.allclose(right.sum(1), 1), 'the definition is wrong'
    assert np.allclose(seen, right) == (len(pmf) == 1), 'this has changed'
    assert np.isclose(seen.sum(1), 1).any() == (len(pmf) == 1), 'this has changed'
    assert len(pmf) < 200 or seen[:, :2].max() < 0, 'this has changed'
PY
