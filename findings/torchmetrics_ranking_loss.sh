#!/usr/bin/env bash
# torchmetrics 1.9.0: the label ranking loss of a predictor that gives all labels the same score depends on the order of the labels.
#
# Expected: "the average number of label pairs that are incorrectly ordered". Equal scores order no pair correctly: scikit-learn 1.9.1,
# whose equation counts ties as errors, gives 1, the worst value. Renaming the labels changes no metric.
# Seen: labels of equal score are ranked by their position. If the true label is the last one, the constant predictor has a perfect
# loss of 0, if it is the first one, 1. Scores that saturate (float32 sigmoid, bfloat16) have many ties. The two other ranking
# metrics of torchmetrics agree with scikit-learn.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet torch==2.13.0 torchmetrics==1.9.0 scikit-learn==1.9.1
cd "$folder"
"$folder/venv/bin/python" - <<'PY'
import sklearn.metrics
import torch
import torchmetrics
from torchmetrics.functional import classification

print(f'torchmetrics {torchmetrics.__version__}')
scores = torch.full((1, 4), 0.5)
seen = []
for target in (torch.tensor([[1, 0, 0, 0]]), torch.tensor([[0, 0, 0, 1]])):
    for ours, theirs in (
        (classification.multilabel_ranking_loss, sklearn.metrics.label_ranking_loss),
        (classification.multilabel_ranking_average_precision, sklearn.metrics.label_ranking_average_precision_score),
        (classification.multilabel_coverage_error, sklearn.metrics.coverage_error),
    ):
        seen.append((ours(scores, target, num_labels=4).item(), float(theirs(target.numpy(), scores.numpy()))))
        print(f'{target.tolist()[0]}, {ours.__name__}: {seen[-1][0]}, scikit-learn {seen[-1][1]}')
assert seen[0] == (1.0, 1.0) and seen[3] == (0.0, 1.0), 'this has changed'
assert all(a == b for a, b in seen[1:3] + seen[4:]), 'this has changed'
PY
