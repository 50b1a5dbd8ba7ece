#!/usr/bin/env bash
# permetrics 2.1.0: homogeneity, completeness and the V measure leave out clusters when there are more clusters than classes.
#
# Expected: homogeneity is 1 - H(classes | clusters) / H(classes) of Rosenberg and Hirschberg (2007), "the extent to which each
# cluster contains only data points that belong to a single class". All clusters count. With independent labels it is near 0.
# Seen: H(classes | clusters) is a sum over the labels in y_true, not over those in y_pred. Labels are encoded as 0, 1, ..., so
# with 2 classes and 6 clusters, only clusters 0 and 1 count, and the others seem to be pure. Homogeneity of random clusters is
# near 2/3. Completeness has the same error with more classes than clusters, and the V measure has both.
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


def by_definition(classes, clusters):
    table = np.array([[np.sum((classes == i) & (clusters == j)) for j in np.unique(clusters)] for i in np.unique(classes)])
    joint = table / table.sum()
    marginal, sizes = joint.sum(1), joint.sum(0)
    conditional = -np.sum(joint * np.log(np.where(joint > 0, joint / sizes, 1)))
    return 1 + conditional / np.sum(marginal * np.log(marginal))


rng = np.random.default_rng(0)
y_true = rng.integers(0, 2, 600)
for clusters in (2, 3, 6):
    y_pred = rng.integers(0, clusters, 600)
    for a, b in ((y_true, y_pred), (y_pred, y_true)):
        metric = ClusteringMetric(y_true=a, y_pred=b)
        seen = metric.homogeneity_score(), metric.completeness_score(), metric.v_measure_score()
        h, c = by_definition(a, b), by_definition(b, a)
        right = h, c, 2 * h * c / (h + c)
        print(f'random labels, {a.max() + 1} classes, {b.max() + 1} clusters: homogeneity, completeness, V measure '
              f'{np.round(seen, 3)}, by the definition {np.round(right, 3)}')  # fmt: skip
        assert max(right) < 0.02
        wrong = 0 if a is y_true else 1
        assert np.isclose(seen[1 - wrong], right[1 - wrong]), 'this has changed'
        assert np.isclose(seen[wrong], right[wrong]) == (clusters == 2), 'this has changed'
        assert clusters == 2 or abs(seen[wrong] - (1 - 2 / clusters)) < 0.06, 'this has changed'
PY
