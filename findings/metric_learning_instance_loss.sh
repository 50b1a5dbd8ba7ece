#!/usr/bin/env bash
# pytorch-metric-learning 2.9.0: InstanceLoss with labels pulls the samples of class c towards the c-th sample of the batch.
#
# Expected: InstanceLoss is "cross-entropy loss for every sample if label is not available, else use given label". A loss of
# labels does not depend on the order of the batch, and is least if samples of one class are equal, and those of others far.
# Seen: the logits are the similarities of each sample to the samples of the batch. But the target is the number of the
# class. So class 2 should be like sample 2, of whatever class. If the best embedding of four samples of four classes comes in
# another order, the loss is 64 in place of 0, and its gradient joins different classes.
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
from pytorch_metric_learning.losses import InstanceLoss

print(f'pytorch-metric-learning {version("pytorch-metric-learning")}')


def cross_entropy(x, targets):  # of each sample to all samples, for the given columns
    x = x / np.linalg.norm(x, axis=1, keepdims=True)
    logits = 64 * x @ x.T
    logits -= logits.max(1, keepdims=True)
    return (np.log(np.exp(logits).sum(1)) - logits[np.arange(len(x)), targets]).mean()


for labels in ([0, 1, 2, 3], [1, 0, 3, 2], [3, 2, 1, 0], [0, 0, 1, 1]):
    x = np.eye(4)[labels]
    seen = InstanceLoss()(torch.tensor(x), torch.tensor(labels)).item()
    own, column = cross_entropy(x, np.arange(4)), cross_entropy(x, labels)
    print(f'best embedding of the labels {labels}: loss {seen:.3f}, target is the sample itself {own:.3f}')
    assert np.isclose(seen, column), 'this has changed'
    assert np.isclose(seen, own) == (labels == [0, 1, 2, 3]), 'this has changed'

rng = np.random.default_rng(0)
x, labels = rng.normal(size=(8, 5)), np.arange(4).repeat(2)
losses = []
for _ in range(5):
    order = rng.permutation(8)
    losses.append(InstanceLoss()(torch.tensor(x[order]), torch.tensor(labels[order])).item())
print(f'the same samples and labels in five orders: {np.round(losses, 2)}, one value is right')
assert np.ptp(losses) > 1, 'this has changed'

x = torch.randn(2, 3, generator=torch.Generator().manual_seed(0)).requires_grad_()
for _ in range(500):
    (gradient,) = torch.autograd.grad(InstanceLoss()(x, torch.tensor([1, 0])), x)
    x = (x - 0.01 * gradient).detach().requires_grad_()
similarity = torch.cosine_similarity(x[0], x[1], dim=0).item()
print(f'two samples of different classes after training: similarity {similarity:.3f}, 0 or less is right')
assert similarity > 0.9, 'this has changed'
PY
