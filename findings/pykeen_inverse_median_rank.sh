#!/usr/bin/env bash
# pykeen 1.11.1: InverseMedianRank with weights is 0 for whole ranks, and so is its expected value.
#
# Expected: "The inverse of the median over all ranks". supports_weights is True, and the documented range of values starts
# above 0. For equal weights, the result is the same as without weights. expected_value(num_samples=...) is the mean of the
# metric over random ranks.
# Seen: the weighted median of whole ranks is an integer, and numpy.reciprocal of an integer above 1 is 0. So ranks 2, 3 and 4
# with equal weights have 0 instead of 1/3. The expected value with weights is a tenth of the right one, as random ranks are
# integers, and only a median of 1 counts. With ranks of type float, the metric is right.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet torch==2.13.0 numpy==2.4.6 scipy==1.17.1 scikit-learn==1.9.1 pandas==3.1.1 \
  class-resolver==0.8.2 docdata==0.0.5 PyYAML==6.0.4 tqdm==4.70.1 pystow==0.10.3
# The metrics need no other of its requirements.
"$folder/venv/bin/pip" install --quiet --no-deps pykeen==1.11.1
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import numpy as np
from pykeen.metrics.ranking import InverseMedianRank, MedianRank

print(f'pykeen {version("pykeen")}')
rng = np.random.default_rng(0)


def weighted_median(ranks, weights):
    order = np.argsort(ranks, kind='stable')
    total = np.cumsum(weights[order]) / weights.sum()
    return ranks[order][np.searchsorted(total, 0.5)]


metric = InverseMedianRank()
for ranks, weights in ((np.array([2, 3, 4]), np.ones(3)), (np.array([5, 2, 9, 2, 40]), np.array([1.0, 0.3, 2.0, 0.4, 0.5]))):
    seen, real = metric(ranks=ranks, weights=weights), metric(ranks=ranks.astype(float), weights=weights)
    right = 1 / weighted_median(ranks, weights)
    print(f'ranks {ranks}, weights {weights}: inverse median {seen:.3f}, of ranks as float {real:.3f}, without weights '
          f'{metric(ranks=ranks):.3f}, by the definition {right:.3f}')  # fmt: skip
    assert seen == 0, 'this has changed'
    assert np.isclose(real, right) and np.isclose(1 / MedianRank()(ranks=ranks, weights=weights), right), 'this has changed'

candidates, weights = np.array([5, 9, 20, 33, 12]), np.array([1.0, 0.3, 2.0, 0.4, 0.5])
seen = metric.expected_value(num_candidates=candidates, num_samples=2000, weights=weights)
right = np.mean([1 / weighted_median(rng.integers(1, candidates + 1), weights) for _ in range(2000)])
print(f'expected value with weights: {seen:.3f}, mean over 2000 random cases {right:.3f}')
assert seen < 0.2 * right and right > 0.05, 'this has changed'
PY
