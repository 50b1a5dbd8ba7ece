#!/usr/bin/env bash
# memory-efficient-attention-pytorch 0.1.6: with a longer context, its three versions of causal attention have three results.
#
# Expected: the documentation says that memory_efficient can be turned off to test against normal attention: both have the same result (Rabe
# and Staats 2021). The module handles causal masks and contexts. With n queries and m keys, queries are the last tokens, as in its
# normal attention: query i sees the keys up to i + m - n. FlashAttention is another exact algorithm for this.
# Seen: memory_efficient=True compares positions from the start: query i sees the keys up to i, and the first query one key. In generation
# with a context of past tokens, new ones do not see the latest m - n of them, nor themselves. FlashAttention has the shift with the
# wrong sign: query i sees the keys up to i - (m - n), and the first ones none, which gives the mean of all keys, later ones included.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet torch==2.13.0 numpy==2.4.6
"$folder/venv/bin/pip" install --quiet --no-deps memory-efficient-attention-pytorch==0.1.6 einops==0.8.2
cd "$folder"
"$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import torch
from memory_efficient_attention_pytorch import Attention, FlashAttention

print(f'memory-efficient-attention-pytorch {version("memory-efficient-attention-pytorch")}')
torch.manual_seed(0)
dim = 8
options = {'dim': dim, 'heads': 1, 'dim_head': dim, 'causal': True}
attention, flash = Attention(**options).eval(), FlashAttention(**options).eval()
for name in ('to_q', 'to_kv', 'to_out'):
    getattr(flash, name).load_state_dict(getattr(attention, name).state_dict())


@torch.no_grad()
def direct(x, context):
    n, m = x.size(1), context.size(1)
    q, (k, v) = attention.to_q(x), attention.to_kv(context).chunk(2, dim=-1)
    score = q @ k.transpose(1, 2) / dim**0.5
    later = torch.arange(m) > torch.arange(m - n, m).view(-1, 1)
    return attention.to_out(score.masked_fill(later, float('-inf')).softmax(-1) @ v)


with torch.no_grad():
    for n, m in ((6, 6), (3, 6), (1, 6)):
        context = torch.randn(1, m, dim)
        x = context[:, m - n :]  # The last tokens.
        right = direct(x, context)
        normal, efficient = (attention(x, context=context, memory_efficient=flag) for flag in (False, True))
        errors = [(out - right).abs().max().item() for out in (normal, flash(x, context=context), efficient)]
        print(f'{n} queries, {m} keys: normal off by {errors[0]:.4f}, flash by {errors[1]:.4f}, memory-efficient by {errors[2]:.4f}')
        assert errors[0] < 1e-5, 'this has changed'
        assert max(errors) < 1e-5 if n == m else min(errors[1:]) > 0.02, 'this has changed'
        # By the definition, the last query sees all keys.
        late = context.clone()
        late[:, -1] += 1.0
        moved = (attention(x, context=late, memory_efficient=True) - efficient)[0, -1].abs().max()
        print(f'  another last key moves the last query by {moved:.4f} with the memory-efficient version')
        assert (moved == 0) == (n < m), 'this has changed'
PY
