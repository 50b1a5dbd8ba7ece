#!/usr/bin/env bash
# persim 0.4.1: the exact persistence landscape is wrong if a pair occurs twice and a later pair overlaps it.
#
# Expected: PersLandscapeExact is the persistence landscape of Bubenik (2015): the k-th function at t is the k-th largest of the
# values max(0, min(t - b, d - t)) of all pairs (b, d). Diagrams of images, of which pixels have few values, have many equal
# pairs.
# Seen: equal pairs are removed while the list is read, and for each the whole function is repeated, with all later pairs that
# it has taken over. Of (0, 4) twice and (3, 10), the second function is the first again, so that (3, 10) counts twice. Its norm
# is 8.2 in place of 6.3. Without equal births or deaths, the landscape is right, and so is PersLandscapeApprox on a fine grid.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet persim==0.4.1 numpy==2.4.6 scipy==1.17.1 scikit-learn==1.8.0 joblib==1.5.3 \
  matplotlib==3.11.2 deprecated==1.3.1
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import numpy as np
from persim.landscapes import PersLandscapeApprox, PersLandscapeExact

print(f'persim {version("persim")}')
grid = np.arange(-1, 14, 0.005)


def by_definition(pairs):  # one row for each depth
    values = np.minimum(grid[:, None] - pairs[:, 0], pairs[:, 1] - grid[:, None]).clip(min=0)
    return -np.sort(-values, axis=1).T


def exact(pairs):
    rows = [np.interp(grid, *zip(*row), left=0, right=0) for row in PersLandscapeExact(dgms=[pairs], hom_deg=0).critical_pairs]
    return np.array(rows + [np.zeros_like(grid)] * (len(pairs) - len(rows)))


def error(pairs):
    pairs = np.array(pairs, float)
    seen, right = exact(pairs), by_definition(pairs)
    return np.abs(seen - np.pad(right, ((0, len(seen) - len(right)), (0, 0)))).max()


for pairs in ([[0, 4], [3, 10]], [[0, 4], [0, 4]], [[0, 4], [0, 4], [3, 10]], [[0, 6], [0, 6], [1, 8], [5, 12]]):
    array = np.array(pairs, float)
    norm, right = PersLandscapeExact(dgms=[array], hom_deg=0).p_norm(2), np.sqrt((by_definition(array) ** 2).sum() * 0.005)
    approximate = PersLandscapeApprox(dgms=[array], hom_deg=0, start=-1, stop=14, num_steps=3001).p_norm(2)
    print(f'{pairs}: greatest error {error(pairs):.3f}, norm {norm:.3f}, approximate {approximate:.3f}, right {right:.3f}')
    assert abs(approximate - right) < 0.01, 'the definition is wrong'
    equal = len({tuple(pair) for pair in pairs}) < len(pairs)
    assert (error(pairs) < 1e-9) == (not equal or len(pairs) == 2) == (abs(norm - right) < 0.01), 'this has changed'

rng = np.random.default_rng(0)
wrong = {'whole numbers': 0, 'real numbers': 0}
for _ in range(300):
    births = rng.integers(0, 8, 5)
    wrong['whole numbers'] += error(np.stack([births, births + rng.integers(1, 5, 5)], 1)) > 1e-9
    births = rng.uniform(0, 8, 5)
    wrong['real numbers'] += error(np.stack([births, births + rng.uniform(1, 5, 5)], 1)) > 1e-9
print(f'wrong landscapes of 300 random diagrams with 5 pairs: {wrong}')
assert wrong['whole numbers'] > 10 and wrong['real numbers'] == 0, 'this has changed'
PY
