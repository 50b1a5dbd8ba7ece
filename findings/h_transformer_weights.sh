#!/usr/bin/env bash
# h-transformer-1d 0.1.9: the weights of attention do not sum to one, and a far token with a tiny score counts as much as a near one.
#
# Expected: the paper (Zhu and Soricut 2021) approximates softmax attention. All levels of the hierarchy use the same exponential, and the
# result is divided by the sum of the weights: of values that are all one, the result is one. Far keys with low scores have no weight.
# Seen: (1) the values of coarse blocks are summed, and the denominator counts a coarse block as one token. So far tokens have a weight of 2,
# 4, ... that is not in the denominator. Of values of one, late tokens get up to 4.5. (2) Each level subtracts its own maximum before the
# exponential, and no level takes it back. So the best key of each level has weight 1, whatever its score is: the result does not change
# at all if the scores of all far keys fall by 50, which hides them in softmax.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet torch==2.13.0 numpy==2.4.6
"$folder/venv/bin/pip" install --quiet --no-deps h-transformer-1d==0.1.9 einops==0.8.2 rotary-embedding-torch==0.9.1
cd "$folder"
"$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import torch
from h_transformer_1d.h_transformer_1d import CausalHAttention1D

print(f'h-transformer-1d {version("h-transformer-1d")}')
n, dim = 64, 4
attention = CausalHAttention1D(dim, max_seq_len=n, heads=1, dim_head=dim, block_size=4)
with torch.no_grad():
    # Queries read the input 0, keys the input 1, and values the input 2. The output is the value.
    weight = torch.zeros(3, dim, dim)
    weight[0, 0, 0] = dim**0.5  # This takes back the scale of the scores.
    weight[1, 0, 1] = weight[2, 0, 2] = 1.0
    attention.to_qkv.weight.copy_(weight.view(3 * dim, dim))
    attention.to_out.weight.copy_(torch.eye(dim))
    attention.to_out.bias.zero_()


def seen_and_right(query, key, value):
    x = torch.stack([query, key, value, torch.zeros(n)], dim=-1)
    score = query.view(-1, 1) * key
    score = score.masked_fill(torch.ones(n, n, dtype=torch.bool).triu(1), float('-inf'))
    with torch.no_grad():
        return attention(x[None])[0, :, 0], score.softmax(-1) @ value


one, zero = torch.ones(n), torch.zeros(n)
seen, right = seen_and_right(zero, zero, one)
print(f'values of one, equal scores: from {seen.min():.3f} to {seen.max():.3f}, softmax {right.min():.3f} to {right.max():.3f}')
assert right.allclose(one) and seen.max() > 4.4 and seen[:4].allclose(one[:4]), 'this has changed'

# Keys of the first half have the score `low` and the value 1, all others the score 0 and the value 0. The last token attends.
for low in (0.0, -5.0, -50.0):
    first = (torch.arange(n) < n // 2).float()
    seen, right = seen_and_right(one, low * first, first)
    print(f'far keys have the score {low:5.1f}: the last token gets {seen[-1]:.3f}, softmax {right[-1]:.3f}')
    assert abs(seen[-1] - 2) < 1e-4, 'this has changed'
assert right[-1] < 1e-12, 'this has changed'
PY
