#!/usr/bin/env bash
# permetrics 2.1.0: the density-based index DBCV counts noise, labeled -1, as a cluster, as labels are encoded before.
#
# Expected: density_based_clustering_validation_index is DBCV of Moulavi et al. (2014), which leaves out noise. The function
# behind it says "Ignore noise (commonly labeled as -1 in density algorithms like DBSCAN)", and that the weights by the number
# of all samples penalize noise. Labels -1, 0 and 1 are two clusters and noise.
# Seen: the method first encodes labels as 0, 1, ... when they do not start at 0. So -1 becomes 0, and noise is a cluster of
# its own, scattered and mixed with the others. There are three values per cluster for two clusters, and the index is that of
# three clusters. The function behind it gives the right one for the same labels.
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
from permetrics.utils.cluster_util import calculate_dbcv_score

print(f'permetrics {version("permetrics")}')
rng = np.random.default_rng(0)
blobs = [rng.normal(center, 0.3, (60, 2)) for center in ((0, 0), (10, 0))]
X = np.concatenate([*blobs, rng.uniform(-5, 15, (60, 2))])
noisy, clean = np.repeat([0, 1, -1], [60, 60, 60]), np.repeat([0, 1], 60)


def index(points, labels):
    metric = ClusteringMetric(y_pred=labels, X=points)
    return metric.density_based_clustering_validation_index(return_type='both')


without, parts = index(X[:120], clean)
seen, seen_parts = index(X, noisy)
right = without * 120 / 180  # noise is left out of the clusters, and counts in the weights alone
behind, behind_parts = calculate_dbcv_score(X, noisy)
print(f'two clusters without noise: {without:.3f}, per cluster {[round(float(value), 3) for value in parts.values()]}')
print(f'with noise labeled -1: {seen:.3f}, per cluster {[round(float(value), 3) for value in seen_parts.values()]}, '
      f'by the definition {right:.3f} and two clusters')  # fmt: skip
print(f'the function behind it with the same labels: {behind:.3f}, clusters {sorted(map(int, behind_parts))}')
assert np.isclose(behind, right) and len(behind_parts) == 2
assert len(seen_parts) == 3 and seen < right - 0.1, 'this has changed'
assert np.isclose(seen, index(X, np.where(noisy < 0, 2, noisy))[0]), 'this has changed'  # the same as a third cluster
PY
