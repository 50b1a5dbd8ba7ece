#!/usr/bin/env bash
# permetrics 2.1.0: the entropy score adds the entropies of all clusters instead of averaging them by size.
#
# Expected: the entropy score of a clustering is the sum of n_j / n times the entropy of the classes within cluster j. The
# source says "Calculate entropy of each cluster and multiply size of cluster". In bits, it is between 0 and the entropy of the
# classes.
# Seen: the matrix of probabilities is flattened by "probs[probs > 0]" before the sum over its first axis. This gives one
# number, the sum of all entropies, and the weights n_j / n sum to 1. So the score grows with the number of clusters. For two
# classes it is at most 1 by the definition, and random clusters have almost their number.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet permetrics==2.1.0 numpy==2.4.6 scipy==1.17.1
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import numpy as np
from permetrics import ClusteringMetric

print(f'permetrics {version("permetrics")}')


def entropies(y_true, y_pred):
    for label in np.unique(y_pred):
        part = np.unique(y_true[y_pred == label], return_counts=True)[1] / np.sum(y_pred == label)
        yield np.mean(y_pred == label), -np.sum(part * np.log2(part))


rng = np.random.default_rng(0)
for classes, clusters, size in ((2, 2, 400), (2, 5, 400), (3, 10, 900)):
    y_true, y_pred = rng.integers(0, classes, size), rng.integers(0, clusters, size)
    seen = ClusteringMetric(y_true=y_true, y_pred=y_pred).entropy_score()
    right = sum(weight * value for weight, value in entropies(y_true, y_pred))
    total = sum(value for _, value in entropies(y_true, y_pred))
    part = np.bincount(y_true) / size
    limit = -np.sum(part * np.log2(part))
    print(f'{classes} classes, {clusters} clusters: {seen:.3f}, by the definition {right:.3f}, entropy of classes {limit:.3f}')
    assert right <= limit < seen and np.isclose(seen, total), 'this has changed'

y_true = np.repeat([0, 1], 50)
y_pred = np.where(np.arange(100) < 98, y_true, 2)  # two pure clusters and a pure one of two samples
y_pred[:1] = 2  # the small cluster is mixed
seen = ClusteringMetric(y_true=y_true, y_pred=y_pred).entropy_score()
right = sum(weight * value for weight, value in entropies(y_true, y_pred))
print(f'all pure but a cluster of three samples: {seen:.3f}, by the definition {right:.3f}')
assert np.isclose(right, 0.03 * 0.9182958) and np.isclose(seen, 0.9182958), 'this has changed'
PY
