#!/usr/bin/env bash
# pytorch-metric-learning 2.9.0: SmoothAPLoss mixes classes, if the number of classes is not the number of elements of each.
#
# Expected: SmoothAPLoss is "implementation of the SmoothAP loss: https://arxiv.org/abs/2007.12163", which is 1 minus a smooth
# average precision. A batch may be [A,A,A, B,B,B, C,C,C], with "the same number of elements for each class". If the elements of
# each class are equal, and classes are orthogonal, the precision is 1, and the loss is close to 0.
# Seen: "num_classes_batch" is the size of the batch divided by the number of classes, which is the number of elements of
# a class. The batch is cut into that many groups. Of [A,A, B,B, C,C], the groups are A,A,B and B,C,C, and the loss of the
# best embedding is 0.21. In the example above, both numbers are 3, so that all is right.
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
from pytorch_metric_learning.losses import SmoothAPLoss

print(f'pytorch-metric-learning {version("pytorch-metric-learning")}')
temperature = 0.01


def by_definition(x, groups):  # 1 - the mean over elements of their smooth average precision, as in the paper
    x = x / np.linalg.norm(x, axis=1, keepdims=True)
    similarity, precision = x @ x.T, []
    for i, group in enumerate(groups):
        total, members = 0, np.flatnonzero(groups == group)
        for k in members:
            above = 1 / (1 + np.exp(np.clip(-(similarity[i] - similarity[i, k]) / temperature, -500, 500)))
            above[k] = 0
            total += (1 + above[members].sum()) / (1 + above.sum())
        precision.append(total / len(members))
    return 1 - np.mean(precision)


rng = np.random.default_rng(0)
for classes, size in ((3, 3), (3, 2), (2, 3), (4, 2), (2, 8)):
    labels = np.arange(classes).repeat(size)
    wrong = np.arange(size).repeat(classes)
    for name, x in (('of the best embedding', np.eye(classes)[labels]), ('of a random one', rng.normal(size=(len(labels), 5)))):
        seen = SmoothAPLoss(temperature)(torch.tensor(x), torch.tensor(labels)).item()
        right, groups = by_definition(x, labels), by_definition(x, wrong)
        print(f'{classes} classes of {size}, loss {name}: {seen:.4f}, by the definition {right:.4f}, of groups {groups:.4f}')
        assert np.isclose(seen, groups, atol=1e-4), 'this has changed'
        assert np.isclose(seen, right, atol=1e-4) == (classes == size), 'this has changed'
PY
