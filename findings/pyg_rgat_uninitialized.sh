#!/usr/bin/env bash
# torch-geometric 2.8.1: RGATConv with mod='scaled' multiplies by memory that was never set.
#
# Expected: l2 is a learnable matrix of RGATConv, which scales attention by the degrees with mod='scaled'. reset_parameters is
# to set it to 1 / out_channels.
# Seen: l2 is torch.empty, and reset_parameters calls torch.full(self.l2.size(), 1 / self.out_channels) without storing the
# result (nn/conv/rgat_conv.py). The layer starts with what is in memory: zeros, numbers of other tensors, or NaN. Two layers
# of one seed differ. torch fills such memory with NaN if deterministic algorithms are asked for, and then all outputs are NaN.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet torch==2.13.0 torch-geometric==2.8.1
cd "$folder"
"$folder/venv/bin/python" -W ignore - <<'PY'
import torch
import torch_geometric
from torch_geometric.nn import RGATConv

print(f'torch {torch.__version__}, torch-geometric {torch_geometric.__version__}')
torch.use_deterministic_algorithms(True)  # empty tensors are NaN
torch.manual_seed(0)
x, edge_type = torch.randn(6, 4), torch.tensor([0, 1, 0, 1, 0, 1, 0, 1])
edge_index = torch.tensor([[0, 1, 2, 3, 4, 5, 0, 1], [1, 2, 3, 4, 5, 0, 3, 4]])
for mod in (None, 'additive', 'f-additive', 'f-scaled', 'scaled'):
    layer = RGATConv(4, 4, num_relations=2, mod=mod)
    unset = [name for name, number in layer.named_parameters() if not bool(number.isfinite().all())]
    out = layer(x, edge_index, edge_type)
    print(f'mod={mod}: parameters with NaN: {unset}, outputs with NaN: {float(out.isnan().float().mean()):.0%}')
    assert unset == ['l2'] and bool(out.isnan().all()) == (mod == 'scaled'), 'this has changed'
with torch.no_grad():
    layer.l2.fill_(1 / 4)  # what reset_parameters is to do
assert bool(layer(x, edge_index, edge_type).isfinite().all())
layer.l2.data.fill_(3.0)
layer.reset_parameters()
print(f'l2 of 3 after reset_parameters: {layer.l2.unique().tolist()}, and 1 / out_channels is {1 / 4}')
assert layer.l2.unique().tolist() == [3.0], 'this has changed'
PY
