#!/usr/bin/env bash
# mapie 1.6.0: the expected calibration error with split_strategy='array split' depends on the order of samples, and is near 0.
#
# Expected: "samples are binned by their top predicted probability and the weighted average of |accuracy - confidence| is
# returned". The order of samples has no effect. "array split" makes bins of equal numbers of scores.
# Seen: the scores are split in the order of samples, without sorting, and the edges of bins are the maxima of these parts. For
# samples in random order, all maxima are near the largest score. So nearly all samples are in one bin, in which over- and
# underconfidence cancel out. For scores sorted in advance, the result is right.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet mapie==1.6.0 numpy==2.4.6 scipy==1.17.1 scikit-learn==1.7.2
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import numpy as np
from mapie.metrics.calibration import expected_calibration_error

print(f'mapie {version("mapie")}')
rng = np.random.default_rng(0)
n, bins = 5000, 10
scores = np.sort(rng.random(n))
labels = (rng.random(n) < np.where(scores > 0.5, 0.75, 0.25)).astype(int)


def by_definition(scores, labels):
    order = np.argsort(scores)
    parts = zip(np.array_split(scores[order], bins), np.array_split(labels[order], bins))
    return sum(len(s) * abs(s.mean() - t.mean()) for s, t in parts) / n


shuffled = rng.permutation(n)
for name, order in (('sorted', np.arange(n)), ('random order', shuffled)):
    seen, right = {}, by_definition(scores[order], labels[order])
    for strategy in ('uniform', 'quantile', 'array split'):
        seen[strategy] = expected_calibration_error(labels[order], scores[order], num_bins=bins, split_strategy=strategy)
    print(f'{name}: {", ".join(f"{key} {value:.4f}" for key, value in seen.items())}, by the definition {right:.4f}')
    assert min(seen['uniform'], seen['quantile'], right) > 0.08
    assert abs(seen['array split'] - right) < 0.005 if name == 'sorted' else seen['array split'] < 0.03, 'this has changed'
PY
