#!/usr/bin/env bash
# irrCAC 0.4.4: weighted coefficients depend on the order of the list of categories, as weights are of the sorted list.
#
# Expected: categories is the "list of all possible ratings", to have those in it which no rater used. Weights of numbers are
# functions of the two ratings, for example 1 - ((k - l) / (max - min))^2 with 'quadratic'. So their order in the list does not
# count. Gwet's AC2, the weighted kappa and the others are functions of the ratings.
# Seen: the class Weights sorts numbers, and counts of ratings keep the order of the list. With [5, 1, 2, 4, 3], the ratings 5
# and 1 have the weight of the pair 1 and 2, which are close, and 5 and 3 that of the farthest pair. The result has the
# 'categories' as given, and 'weights' which are not theirs.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet irrCAC==0.4.4 numpy==1.26.4 scipy==1.12.0 pandas==2.3.3
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import numpy as np
import pandas as pd
from irrCAC.raw import CAC

print(f'irrCAC {version("irrCAC")}')
rng = np.random.default_rng(0)
truth = rng.choice([1, 2, 4, 5], 40)  # nobody gives a 3
ratings = pd.DataFrame({name: np.where(rng.random(40) < 0.8, truth, rng.choice([1, 2, 4, 5], 40)) for name in 'abc'})


def kappa_by_definition(values):
    similarity = 1 - (values[:, :, None] - values[:, None, :]) ** 2 / 16
    agreement = np.mean([similarity[:, i, j].mean() for i in range(3) for j in range(3) if i != j])
    pooled = values.ravel()
    chance = (1 - (pooled[:, None] - pooled) ** 2 / 16).mean()
    return (agreement - chance) / (1 - chance)


right = kappa_by_definition(ratings.to_numpy().astype(float))
methods = ('fleiss', 'krippendorff', 'gwet', 'conger', 'bp')
results = {}
for categories in ([1, 2, 3, 4, 5], [5, 4, 3, 2, 1], [5, 1, 2, 4, 3], [3, 1, 5, 2, 4]):
    result = [CAC(ratings, weights='quadratic', categories=categories) for _ in methods]
    seen = [float(getattr(one, method)()['est']['coefficient_value']) for one, method in zip(result, methods)]
    results[str(categories)] = seen
    print(f'{categories}: ' + ', '.join(f'{name} {value:.4f}' for name, value in zip(methods, seen))
          + f". Fleiss' kappa by the definition {right:.4f}")  # fmt: skip
    assert np.isclose(seen[0], right, atol=1e-4) == (categories in ([1, 2, 3, 4, 5], [5, 4, 3, 2, 1])), 'this has changed'
table = list(results.values())
assert np.allclose(table[0], table[1]) and (np.abs(np.subtract(table[2], table[0])) > 0.01).all(), 'this has changed'
PY
