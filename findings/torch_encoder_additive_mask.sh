#!/usr/bin/env bash
# torch 2.13.0: TransformerEncoderLayer takes an additive mask for a boolean one as soon as no gradient is needed.
#
# Expected: src_mask is documented as "the additive mask for the src sequence". A bias such as minus the distance of two nodes lowers
# their attention. The output is the same in eval() with and without torch.no_grad(), as MultiheadAttention has it.
# Seen: in eval() under no_grad(), the layer takes a fast path, in which every entry that is not 0 forbids its pair. With
# minus the distance, each token attends to itself alone, without a warning, so that a model is tested as another one than was trained.
# With a bias without zeros, the output is nan. TransformerEncoder, and floating point masks of padding, share it. Masks of 0 and -inf
# alone are right.
# The nan is known: https://github.com/pytorch/pytorch/issues/118628
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet torch==2.13.0 numpy==2.4.6
cd "$folder"
"$folder/venv/bin/python" - <<'PY'
import math

import torch
from torch.nn import MultiheadAttention, TransformerEncoder, TransformerEncoderLayer

print(f'torch {torch.__version__}')
torch.manual_seed(0)
x = torch.randn(1, 4, 8)
distance = (torch.arange(4.0).view(-1, 1) - torch.arange(4.0)).abs()
causal = torch.full((4, 4), -torch.inf).triu(1)
layer = TransformerEncoderLayer(8, 2, 16, batch_first=True).eval()
encoder = TransformerEncoder(TransformerEncoderLayer(8, 2, 16, batch_first=True), 2).eval()
attention = MultiheadAttention(8, 2, batch_first=True).eval()
calls = {
    'layer, minus the distance': lambda: layer(x, src_mask=-distance),
    'layer, 1 - distance / 8': lambda: layer(x, src_mask=1 - distance / 8),
    'layer, 0 and -inf': lambda: layer(x, src_mask=causal),
    'layer, weights of keys': lambda: layer(x, src_key_padding_mask=torch.tensor([[0.0, -1.0, 0.0, -1.0]])),
    'encoder, minus the distance': lambda: encoder(x, mask=-distance),
    'attention, minus the distance': lambda: attention(x, x, x, attn_mask=-distance, need_weights=False)[0],
}
seen = {}
for name, call in calls.items():
    slow = call().detach()
    with torch.no_grad():
        fast = call()
    seen[name] = (fast - slow).abs().max().item()
    print(f'{name}: with and without no_grad() differ by {seen[name]:.2g}')
with torch.no_grad():
    alone = (layer(x, src_mask=-distance) - layer(x, src_mask=torch.where(distance > 0, -torch.inf, 0.0))).abs().max().item()
print(f'layer, minus the distance, under no_grad(), and each token for itself: differ by {alone:.2g}')
right = seen.pop('layer, 0 and -inf'), seen.pop('attention, minus the distance'), alone
assert max(right) < 1e-5, 'this has changed'
assert math.isnan(seen.pop('layer, 1 - distance / 8')) and min(seen.values()) > 0.05, 'this has changed'
PY
