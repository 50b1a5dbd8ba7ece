#!/usr/bin/env bash
# pytorch-metric-learning 2.9.0: ThresholdConsistentMarginLoss ignores ref_emb, and pairs the embeddings with each other.
#
# Expected: "loss_fn(embeddings, labels, ref_emb=ref_emb, ref_labels=ref_labels)" takes the anchors of embeddings, and the
# positives and negatives of ref_emb, for all losses that do not raise an error for it. ContrastiveLoss does.
# Seen: the pairs are found with ref_labels, but both sides are read from embeddings. So the loss is independent of ref_emb, no
# gradient reaches it, and a positive pair has the embedding of another sample, of any class. Without ref_emb, it is right.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet pytorch-metric-learning==2.9.0 torch==2.13.0 numpy==2.4.6 scikit-learn==1.8.0
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import numpy as np
import torch
from pytorch_metric_learning.distances import CosineSimilarity
from pytorch_metric_learning.losses import ContrastiveLoss, ThresholdConsistentMarginLoss
from pytorch_metric_learning.reducers import MeanReducer

print(f'pytorch-metric-learning {version("pytorch-metric-learning")}')


def similarities(a, b):
    return (a / np.linalg.norm(a, axis=1, keepdims=True)) @ (b / np.linalg.norm(b, axis=1, keepdims=True)).T


def margin(similarity, same):  # the mean excess of positive pairs below 0.9, and of negative ones above 0.5
    positive, negative = 0.9 - similarity[same], similarity[~same] - 0.5
    return positive[positive >= 0].mean() + negative[negative >= 0].mean()


def contrastive(similarity, same):  # with margins of 1 and 0
    return np.maximum(1 - similarity[same], 0).mean() + np.maximum(similarity[~same], 0).mean()


rng = np.random.default_rng(0)
x, labels, ref_labels = rng.normal(size=(8, 3)), np.arange(2).repeat(4), np.tile([0, 1], 4)
losses = ThresholdConsistentMarginLoss(), ContrastiveLoss(1, 0, distance=CosineSimilarity(), reducer=MeanReducer())
for loss, definition in zip(losses, (margin, contrastive)):
    name, values = type(loss).__name__, []
    for _ in range(3):
        ref = rng.normal(size=(8, 3))
        ref_emb = torch.tensor(ref, requires_grad=True)
        reference = {'ref_emb': ref_emb, 'ref_labels': torch.tensor(ref_labels)}
        value = loss(torch.tensor(x, requires_grad=True), torch.tensor(labels), **reference)
        value.backward()
        values.append((value.item(), definition(similarities(x, ref), labels[:, None] == ref_labels)))
    seen, right = np.transpose(values)
    print(f'{name}, three random ref_emb: {seen.round(3)}, by the definition {right.round(3)}, '
          f'ref_emb has a gradient: {ref_emb.grad is not None}')  # fmt: skip
    if definition is margin:
        assert np.ptp(seen) == 0 and np.ptp(right) > 0.01 and ref_emb.grad is None, 'this has changed'
        alone = loss(torch.tensor(x), torch.tensor(labels)).item()
        same, other = labels[:, None] == labels, ~np.eye(8, dtype=bool)
        right = margin(similarities(x, x)[other], same[other])
        print(f'{name} without ref_emb: {alone:.3f}, by the definition {right:.3f}')
        assert np.isclose(alone, right), 'this has changed'
    else:
        assert np.allclose(seen, right) and ref_emb.grad is not None, 'this has changed'
PY
