#!/usr/bin/env bash
# torch-geometric 2.8.1: StdAggregation returns exactly 0 for 0.001, 0.003, 0.005, and 0 for 10001, 10003, 10005.
#
# Expected: documented as the square root of the variance, 0.00163 and 1.63.
# Seen: a variance below 1e-5 is replaced by 0, so every standard deviation below 0.00316 is lost (features scaled to small units). And
# the variance is mean(x^2) - mean(x)^2 in float32, which cancels for values far from 0. PNAConv and LocalDegreeProfile
# use this aggregation.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet torch==2.13.0 torch-geometric==2.8.1
cd "$folder"
"$folder/venv/bin/python" - <<'PY'
import torch
import torch_geometric
from torch_geometric.nn.aggr import StdAggregation

print(f'torch-geometric {torch_geometric.__version__}')
index = torch.zeros(3, dtype=torch.long)
seen = []
for values in ((1.0, 3.0, 5.0), (0.001, 0.003, 0.005), (10001.0, 10003.0, 10005.0)):
    x = torch.tensor(values).view(-1, 1)
    seen.append(StdAggregation()(x, index).item())
    print(f'{values}: StdAggregation {seen[-1]:.6f}, torch.std {x.std(correction=0):.6f}')
assert abs(seen[0] - 1.63299) < 1e-4 and seen[1:] == [0.0, 0.0], 'this has changed'
PY
