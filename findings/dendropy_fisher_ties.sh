#!/usr/bin/env bash
# DendroPy 5.1.3: the two-sided p-value of Fisher's exact test may be half of what is right, as ties are lost.
#
# Expected: two_tail_p is the sum of the probabilities of a table and of all that are at most as probable, with the same totals
# (dendropy.calculate.statistics.FishersExactTest: "sum of the probability of this table and all others more extreme"). A table
# and its mirror image are equally probable, and both count.
# Seen: probabilities are exponentials of sums of logarithms, and compared with <=. If rounding makes the probability of the
# mirror image larger by 1e-16, it does not count. A p-value of 0.0046 becomes 0.0023, one of 1 becomes 0.5. Of random tables
# with equal totals of rows, 14% are wrong. scipy compares with a tolerance for this.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet dendropy==5.1.3 numpy==2.4.6 scipy==1.17.1
cd "$folder"
"$folder/venv/bin/python" -W ignore - <<'PY'
from fractions import Fraction
from importlib.metadata import version
from math import comb

import numpy as np
from dendropy.calculate.statistics import FishersExactTest
from scipy.stats import fisher_exact

print(f'DendroPy {version("dendropy")}')


def by_definition(table):
    (a, b), (c, d) = table
    def probability(x):
        return Fraction(comb(a + b, x) * comb(c + d, a + c - x), comb(a + b + c + d, a + c))

    possible = range(max(0, a - d), min(a + b, a + c) + 1)
    return float(sum(probability(x) for x in possible if probability(x) <= probability(a)))


for table in ([[12, 0], [5, 7]], [[9, 8], [0, 1]], [[7, 5], [1, 3]], [[12, 7], [0, 5]]):
    seen, right, other = FishersExactTest(table).two_tail_p(), by_definition(table), fisher_exact(table)[1]
    print(f'{table}: {seen:.5f}, by the definition {right:.5f}, scipy {other:.5f}')
    assert np.isclose(right, other) and seen < 0.7 * right, 'this has changed'

rng, wrong, both = np.random.default_rng(0), 0, 0
for _ in range(2000):
    n, a, c = rng.integers(4, 25), *rng.integers(0, 25, 2)
    if a == c or max(a, c) > n:
        continue
    table = [[int(a), int(n - a)], [int(c), int(n - c)]]  # Both rows have the same total: swapping them is the mirror image.
    seen, right = FishersExactTest(table).two_tail_p(), by_definition(table)
    wrong, both = wrong + (not np.isclose(seen, right)), both + 1
print(f'random tables with equal totals of rows: {wrong} of {both} are wrong')
assert wrong > 50, 'this has changed'
PY
