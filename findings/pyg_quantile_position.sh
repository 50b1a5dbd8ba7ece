#!/usr/bin/env bash
# torch-geometric 2.8.1: the quantile of a group depends on its position in the batch.
#
# Expected: an aggregation of a group depends on the elements of this group alone, so that equal groups have equal results.
# Seen: QuantileAggregation computes the rank of the quantile as "q * (n - 1) + number of elements in front of the group", in
# float32, and then rounds or interpolates this sum. First, "nearest" rounds a rank of x.5 to an even position of the whole batch:
# the median of 0 and 10 is 0 or 10, in turns. Second, behind 2^23 elements the fraction of the rank is lost: "linear" and even
# MedianAggregation return another element.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet torch==2.13.0 torch-geometric==2.8.1
cd "$folder"
"$folder/venv/bin/python" - <<'PY'
import torch
import torch_geometric
from torch_geometric.nn.aggr import MedianAggregation, QuantileAggregation

print(f'torch-geometric {torch_geometric.__version__}')
x = torch.tensor([0.0, 10.0, 5.0, 0.0, 10.0]).view(-1, 1)
near = QuantileAggregation(0.5, interpolation='nearest')(x, torch.tensor([0, 0, 1, 2, 2])).flatten().tolist()
print(f'nearest, groups [0, 10], [5], [0, 10]: {near}')

groups = 2_200_000  # All are [0, 1, 2, 3].
x = torch.arange(4.0).repeat(groups).view(-1, 1)
index = torch.arange(groups).repeat_interleave(4)
seen = {}
for aggr in (QuantileAggregation(0.5), QuantileAggregation(0.25), MedianAggregation()):
    result = aggr(x, index).flatten()
    seen[str(aggr)] = (result[0].item(), result[-1].item())
    print(f'{aggr} of [0, 1, 2, 3]: first group {result[0]:g}, last of {groups} equal groups {result[-1]:g}')
assert near == [0.0, 5.0, 10.0], 'this has changed'
assert list(seen.values()) == [(1.5, 2.0), (0.75, 1.0), (1.0, 2.0)], 'this has changed'
PY
