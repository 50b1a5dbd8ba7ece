#!/usr/bin/env bash
# segregation 2.5.4: the modified indices of dissimilarity and of Gini use one random draw, however many iterations one asks for.
#
# Expected: ModifiedDissim and ModifiedGini follow Carrington and Troske (1997): D is compared with D*, its expected value if people were
# distributed by chance. iterations, by default 500, is the number of draws for this average.
# Seen: before each draw, the generator gets the same seed. All draws are equal, so that 500 of them are one draw. The index keeps
# the noise of a single one: in small units it varies by 0.1 from call to call, for 2 iterations and for 400 alike.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet segregation==2.5.4 libpysal==4.14.1 geopandas==1.1.1 shapely==2.1.1 numpy==2.2.6 pandas==2.2.3 \
  scipy==1.15.3 scikit-learn==1.9.1
cd "$folder"
"$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import numpy as np
import pandas as pd
from segregation.singlegroup import Dissim, ModifiedDissim, ModifiedGini

print(f'segregation {version("segregation")}')
table = pd.DataFrame({'group': [9, 3, 2, 1, 4, 6, 8, 1], 'total': [10, 12, 9, 11, 10, 12, 10, 9]})
group, total = table['group'].to_numpy(), table['total'].to_numpy()


def dissimilarity(group):
    return np.abs(group / group.sum() - (total - group) / (total - group).sum()).sum() / 2


observed = dissimilarity(group)
assert np.isclose(Dissim(table, 'group', 'total').statistic, observed)


def by_hand(iterations, seed):
    draws = np.random.default_rng(seed).binomial(total, group.sum() / total.sum(), size=(iterations, len(total)))
    chance = np.mean([dissimilarity(draw) for draw in draws])
    return (observed - chance) / (1 - chance) if observed >= chance else (observed - chance) / chance


def seen(index, iterations, seed):
    np.random.seed(seed)
    return index(table.copy(), 'group', 'total', iterations=iterations, n_jobs=1).statistic


for name, index in (('ModifiedDissim', ModifiedDissim), ('ModifiedGini', ModifiedGini)):
    few, many = (np.array([seen(index, iterations, seed) for seed in range(6)]) for iterations in (2, 400))
    print(f'{name}, six calls with 2 iterations:   {few.round(4)}\n{name}, six calls with 400 iterations: {many.round(4)}')
    assert np.allclose(few, many) and np.ptp(many) > 0.1, 'this has changed'
right = np.array([by_hand(400, seed) for seed in range(6)])
print(f'by the definition, dissimilarity of 400 draws:     {right.round(4)}')
assert np.ptp(right) < 0.03, 'this has changed'
PY
