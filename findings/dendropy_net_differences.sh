#!/usr/bin/env bash
# DendroPy 5.1.3: net differences between two populations take off the sum of both differences within, not the mean.
#
# Expected: the number of net differences is d_xy - (d_x + d_y) / 2 (Nei and Li 1979). Two samples of one population have none,
# in the mean. Differences within are the mean of both populations: if all sequences differ in 2 sites, they are 2.
# Seen: PopulationPairSummaryStatistics has average_number_of_pairwise_differences_within = d_x + d_y, and ..._net as
# ..._between less that. For two samples of one population, the differences within are twice those between, and the net
# differences are the negative of all differences. Two populations have to differ twice as much as within, to be any apart.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet dendropy==5.1.3 numpy==2.4.6
cd "$folder"
"$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import dendropy
import numpy as np
from dendropy.calculate.popgenstat import PopulationPairSummaryStatistics

print(f'DendroPy {version("dendropy")}')
rng = np.random.default_rng(0)


def statistics(first, second):
    rows = [''.join('ACGT'[i] for i in row) for row in np.concatenate([first, second])]
    data = ''.join(f'>s{i}\n{row}\n' for i, row in enumerate(rows))
    sequences = list(dendropy.DnaCharacterMatrix.get(data=data, schema='fasta').sequences())
    result = PopulationPairSummaryStatistics(sequences[: len(first)], sequences[len(first) :])
    return [getattr(result, f'average_number_of_pairwise_differences_{name}') for name in ('between', 'within', 'net')]


def by_definition(first, second):
    def differences(a, b):
        return (a[:, None] != b).sum(-1)

    within = [differences(a, a)[np.triu_indices(len(a), 1)].mean() for a in (first, second)]
    between = differences(first, second).mean()
    return [between, np.mean(within), between - np.mean(within)]


for name, shift in (('one population, two samples', 0), ('two populations', 8)):
    seen, right = [], []
    for _ in range(20):
        first, second = ((rng.random((8, 60)) < 0.1) * 1 for _ in range(2))
        second[:, :shift] = 3 - second[:, :shift]  # These sites have other bases in the second population.
        seen.append(statistics(first, second))
        right.append(by_definition(first, second))
    seen, right = np.array(seen), np.array(right)
    print(f'{name}: between, within, net {seen.mean(0).round(2)}, by the definition {right.mean(0).round(2)}')
    assert np.allclose(seen[:, 0], right[:, 0]) and np.allclose(seen[:, 1], 2 * right[:, 1]), 'this has changed'
    assert np.allclose(seen[:, 2], right[:, 0] - 2 * right[:, 1]), 'this has changed'
    assert abs(right[:, 2].mean() - 0.82 * shift) < 0.5 and seen[:, 2].max() < 0, 'this has changed'
PY
