#!/usr/bin/env bash
# networkit 11.3: for link predictions, the area under the ROC curve is 0.5 for the worst ranking, and that of precision and recall is
# 0.875 for a perfect one.
#
# Expected: ROCMetric "provides points that define the Receiver Operating Characteristic curve", and the area follows by the trapezoidal
# rule. It is the share of pairs of a link and a non-link in the right order: 0 if the non-link comes first, 1 for a perfect ranking,
# as in scikit-learn 1.9.1. Precision and recall of a perfect ranking have an area of 1.
# Seen: of points with equal x, only the last one is kept. The vertical steps of the ROC curve become slopes, so a random or bad ranking
# gains up to half of a step: a quarter with two non-links. In the other curve, the precision at full recall is the share of links among
# all predictions, not the best one at full recall. The area of a method depends on the number of non-links.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet networkit==11.3 scikit-learn==1.9.1 numpy==2.4.6 scipy==1.17.1
"$folder/venv/bin/python" - <<'PY'
import networkit as nk
from sklearn.metrics import average_precision_score, roc_auc_score

print(f'networkit {nk.__version__}')
seen = {}
for links in ((1, 1, 0, 0), (1, 0), (1, 0, 1, 0), (0, 1, 0, 0, 1, 1), (0, 0, 1, 1), (0, 1)):  # From the highest score on.
    graph = nk.Graph(2 * len(links))
    for pair, is_link in enumerate(links):
        if is_link:
            graph.addEdge(2 * pair, 2 * pair + 1)
    scores = [float(len(links) - pair) for pair in range(len(links))]
    predictions = [((2 * pair, 2 * pair + 1), score) for pair, score in enumerate(scores)]
    areas = []
    for kind in (nk.linkprediction.ROCMetric, nk.linkprediction.PrecisionRecallMetric):
        metric = kind(graph)
        points = metric.getCurve(predictions)
        areas.append(round(metric.getAreaUnderCurve(), 3))
        if kind is nk.linkprediction.ROCMetric:
            curve = points
    right = [(a > b) + 0.0 for i, a in zip(links, scores) if i for j, b in zip(links, scores) if not j]
    roc = sum(right) / len(right)
    assert abs(roc - roc_auc_score(links, scores)) < 1e-9, 'scikit-learn differs from the share of pairs'
    seen[links] = areas
    print(f'{links}: ROC area {areas[0]}, share of pairs {roc:.3f}; curve {curve}')
    print(f'  precision and recall {areas[1]}, average precision of scikit-learn {average_precision_score(links, scores):.3f}')
assert [area for area, _ in seen.values()] == [1.0, 1.0, 0.875, 0.389, 0.25, 0.5], 'this has changed'
assert seen[1, 1, 0, 0][1] == 0.875 and seen[1, 0][1] == 0.75, 'this has changed'
PY
