#!/usr/bin/env bash
# torch-geometric 2.8.1: LSTMAggregation, GRUAggregation, LCMAggregation and PatchTransformerAggregation read the padding of a group.
#
# Expected: an aggregation of a group depends on the elements of this group. SAGEConv(aggr="lstm") of a node depends on its neighbors:
# the original GraphSAGE reads the state after the last neighbor.
# Seen: the groups are padded with zeros to the size of the largest one. The recurrent layers run on over the padding, and return their
# state at its end. LCM and the patches treat zeros as elements. So a node in a batch with a hub has another output than
# alone: behind 100 zeros, the outputs for two different groups are nearly equal. And PatchTransformerAggregation with patch_size=4
# drops the fifth element of a group of five, as it rounds the number of patches down.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet torch==2.13.0 torch-geometric==2.8.1
cd "$folder"
"$folder/venv/bin/python" - <<'PY'
import torch
import torch_geometric
from torch_geometric.nn import SAGEConv
from torch_geometric.nn.aggr import (
    GraphMultisetTransformer, GRUAggregation, LCMAggregation, LSTMAggregation, PatchTransformerAggregation, Set2Set,
)  # fmt: skip

print(f'torch-geometric {torch_geometric.__version__}')
torch.manual_seed(0)
group, other = torch.randn(4, 8), torch.randn(100, 8)
index = torch.tensor([0] * 4 + [1] * 100)
seen = {}
for aggr in (
    LSTMAggregation(8, 8), GRUAggregation(8, 8), LCMAggregation(8, 8), PatchTransformerAggregation(8, 8, 4, 8),
    Set2Set(8, 2), GraphMultisetTransformer(8, 2),
):  # fmt: skip
    alone, beside = aggr(group, index[:4])[0], aggr(torch.cat([group, other]), index)[0]
    seen[type(aggr).__name__] = (beside - alone).abs().max().item()
    print(f'{type(aggr).__name__}: 4 elements beside a group of 100 differ by {seen[type(aggr).__name__]:.2g}')

conv = SAGEConv(8, 8, aggr='lstm', root_weight=False)
star = torch.stack([torch.arange(5, 105), torch.full((100,), 104)])
one = torch.tensor([[1, 2, 3, 4], [0, 0, 0, 0]])
x = torch.randn(105, 8)
swapped = x.clone()
swapped[1:5] = torch.randn(4, 8)
small = (conv(x, one)[0] - conv(swapped, one)[0]).abs().max().item()
hub = (conv(x, torch.cat([one, star], 1))[0] - conv(swapped, torch.cat([one, star], 1))[0]).abs().max().item()
print(f'SAGEConv(aggr="lstm"): other neighbors change node 0 by {small:.2g}, with a hub elsewhere in the graph by {hub:.2g}')

patch = PatchTransformerAggregation(8, 8, 4, 8)
longer = torch.randn(5, 8)
other = longer * torch.tensor([1, 1, 1, 1, -9.0]).view(-1, 1)
change = (patch(longer, index[:4].new_zeros(5)) - patch(other, index.new_zeros(5))).abs().max()
print(f'PatchTransformerAggregation(patch_size=4): the fifth of five elements changes the output by {change:.2g}')
right = [seen.pop('Set2Set'), seen.pop('GraphMultisetTransformer')]
assert max(right) < 1e-5 and min(seen.values()) > 0.05 and small > 0.05 and hub < 1e-6 and change == 0, 'this has changed'
PY
