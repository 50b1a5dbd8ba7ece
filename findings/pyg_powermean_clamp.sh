#!/usr/bin/env bash
# torch-geometric 2.8.1: PowerMeanAggregation returns 10 for the power mean of 50 and 50, at p = 2.
#
# Expected: the documented equation, (mean of x^p)^(1/p), which is 50. The documented clamp to [clamp_min, clamp_max] = [1e-4, 100]
# does not touch inputs of 50.
# Seen: the mean of the powers, 2500, is clamped to 100 as well, before the root is taken. So no result exceeds 100^(1/p), which
# is 10 at p = 2 and 4.6 at p = 3. Features above that limit are all mapped to the same value, with a gradient of 0.
# The range became an option in https://github.com/pyg-team/pytorch_geometric/pull/10366, which keeps the second clamp.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet torch==2.13.0 torch-geometric==2.8.1
cd "$folder"
"$folder/venv/bin/python" - <<'PY'
import torch
import torch_geometric
from torch_geometric.nn.aggr import PowerMeanAggregation

print(f'torch-geometric {torch_geometric.__version__}')
index = torch.zeros(2, dtype=torch.long)
seen = {}
for power in (1.0, 2.0, 3.0):
    x = torch.tensor([[50.0], [50.0]], requires_grad=True)
    result = PowerMeanAggregation(power)(x, index)
    result.sum().backward()
    seen[power] = round(result.item(), 3)
    print(f'p = {power}: power mean of 50 and 50: {seen[power]}, gradient {x.grad.flatten().tolist()}')
wide = PowerMeanAggregation(2.0, clamp_max=None)(torch.tensor([[50.0], [50.0]]), index).item()
print(f'p = 2.0 without upper bound: {wide:.3f}')
assert seen == {1.0: 50.0, 2.0: 10.0, 3.0: 4.642} and abs(wide - 50) < 1e-3, 'this has changed'
PY
