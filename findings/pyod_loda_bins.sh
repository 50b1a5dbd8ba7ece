#!/usr/bin/env bash
# pyod 3.6.7: LODA scores a sample with the density of the next histogram bin, and not with that of its own bin.
#
# Expected: LODA of Pevny (2016), "Loda: Lightweight on-line detector of anomalies", is the mean over random projections of
# -log p(w^T x), with p "by histograms". So p of a sample is the part of training samples in the bin in which its projection
# falls.
# Seen: the bin is found with np.searchsorted(limits[:n_bins - 1], value, side="left"). limits starts with the left end of the
# first bin, so that a value in the first bin gets index 1, that is the second bin. All bins but the last two are off by one.
# A sample before an empty bin gets the score of an empty bin, -log 1e-12, although many training samples are beside it. With
# two groups of samples, those at the right end of the first group look like outliers, and an outlier left of a full bin looks
# like an inlier.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet pyod==3.6.7 numpy==2.3.5 scipy==1.17.1 \
    scikit-learn==1.9.1 numba==0.63.1 joblib==1.6.0 matplotlib==3.11.2
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import numpy as np
from pyod.models.loda import LODA

print(f'pyod {version("pyod")}')
# One feature: a group at 0 to 1, another at 4 to 5, and one outlier at 3, alone in the bin left of the second group.
values = np.concatenate([np.linspace(0.05, 0.95, 60), np.linspace(4.05, 4.95, 40), [0.0, 5.0, 3.5]])
x = values[:, None]
model = LODA(n_bins=5, n_random_cuts=20, random_state=0).fit(x)


def by_definition(points):
    total = np.zeros(len(points))
    for weights in model.projections_:
        train, test = x @ weights, points @ weights
        edges = np.linspace(train.min(), train.max(), 6)
        own = np.clip(np.searchsorted(edges, test, side='right') - 1, 0, 4)
        counts = np.bincount(np.clip(np.searchsorted(edges, train, side='right') - 1, 0, 4), minlength=5)
        total -= np.log((counts[own] + 1e-12) / (counts.sum() + 5e-12))
    return total / len(model.projections_)


print(f'signs of the projections: {int((model.projections_ > 0).sum())} positive of {len(model.projections_)}')
right = by_definition(x)
for name, part in (('first group, 61 of 103 samples', values < 1.5), ('second group, 41 of 103 samples', values > 4),
                   ('outlier, 1 of 103 samples', values == 3.5)):  # fmt: skip
    print(f'{name}: mean score {model.decision_scores_[part].mean():.3f}, by the definition {right[part].mean():.3f}')
seen = model.decision_scores_
rank = [1 + int((scores > scores[-1] + 1e-9).sum()) for scores in (seen, right)]
print(f'rank of the outlier among 103: {rank[0]}, by the definition {rank[1]}')
assert rank == [61, 1] and np.array_equal(model.decision_function(x), seen), 'this has changed'
assert seen[values < 1.5].mean() > seen[-1] > seen[values > 4].mean(), 'this has changed'
assert right[-1] > right[values > 4].max() > right[values < 1.5].max()
PY
