#!/usr/bin/env bash
# torch-geometric 2.8.1: EquilibriumAggregation of a group changes with the number of groups in the batch.
#
# Expected: the documentation defines the output of one set by the minimum of R(y) + sum_i F(x_i, y). It depends on this set alone.
# Seen: F is summed over the groups of the batch, but R is their mean. So each of G groups has the regularisation lambda / G: 100 equal
# groups have outputs of 20 times the length of one, exactly those of one group whose lambda is 100 times smaller. Batches of one
# size hide it. The last batch of an epoch, a larger batch for testing, and single graphs do not.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet torch==2.13.0 torch-geometric==2.8.1
cd "$folder"
"$folder/venv/bin/python" - <<'PY'
import copy

import torch
import torch_geometric
from torch.nn.functional import softplus
from torch_geometric.nn.aggr import EquilibriumAggregation, GraphMultisetTransformer

print(f'torch-geometric {torch_geometric.__version__}')
torch.manual_seed(0)
aggr, peer = EquilibriumAggregation(4, 4, num_layers=[8]), GraphMultisetTransformer(4, 2)
group = torch.randn(3, 4)
seen = {}
for copies in (1, 2, 10, 100):
    x, index = group.repeat(copies, 1), torch.arange(copies).repeat_interleave(3)
    output = aggr(x, index)
    weaker = copy.deepcopy(aggr)  # softplus(lambda) is divided by the number of groups.
    weaker.lamb.data = torch.log(torch.expm1(softplus(aggr.lamb.data) / copies))
    same = torch.allclose(output[0], weaker(group, index[:3])[0], atol=1e-4)
    seen[copies] = output[0].norm().item(), peer(x, index)[0].norm().item(), same
    print(f'{copies} equal groups: length of each output {seen[copies][0]:.4f}, that of one group and lambda / {copies}: {same},', end=' ')
    print(f'GraphMultisetTransformer {seen[copies][1]:.4f}')
assert seen[100][0] > 5 * seen[1][0] and all(same for *_, same in seen.values()), 'this has changed'
assert max(abs(length - seen[1][1]) for _, length, _ in seen.values()) < 1e-4, 'this has changed'
PY
