#!/usr/bin/env bash
# torch-geometric 2.8.1: DiffGroupNorm.group_distance_ratio is a quarter of its documented value for five classes.
#
# Expected: the documented equation, whose numerator sums the mean distance of two classes over all pairs of classes, divided by
# (C - 1)^2.
# Seen: the code takes the mean distance of each class to all other points together, C terms instead of C (C - 1), but still divides
# by (C - 1)^2. For classes of equal size the result is too small by the factor C - 1. So the ratio falls as classes are added, and
# a value below 1 does not mean that classes are closer to each other than to themselves.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet torch==2.13.0 torch-geometric==2.8.1
cd "$folder"
"$folder/venv/bin/python" - <<'PY'
import torch
import torch_geometric
from torch_geometric.nn import DiffGroupNorm

print(f'torch-geometric {torch_geometric.__version__}')
torch.manual_seed(0)
factors = []
for classes in (2, 3, 5, 9):
    y = torch.arange(classes).repeat_interleave(20)
    x = torch.randn(y.numel(), 4) + 3 * torch.randn(classes, 4)[y]
    distance = torch.cdist(x, x)
    mean = torch.tensor([[distance[y == i][:, y == j].mean() for j in range(classes)] for i in range(classes)])
    documented = ((mean.sum() - mean.trace()) / (classes - 1) ** 2 / (mean.trace() / classes)).item()
    seen = DiffGroupNorm.group_distance_ratio(x, y)
    factors.append(documented / seen)
    print(f'{classes} classes: documented {documented:.4f}, returned {seen:.4f}, factor {factors[-1]:.4f}')
assert torch.allclose(torch.tensor(factors), torch.tensor([1.0, 2.0, 4.0, 8.0]), rtol=1e-3), 'this has changed'
PY
