#!/usr/bin/env bash
# linear-attention-transformer 0.19.1: the options ff_glu and ff_dropout of the feed-forward layers have no effect.
#
# Expected: LinearAttentionTransformer(ff_glu=True, ff_dropout=0.1) has gated feed-forward layers, whose first matrix has twice as many rows,
# with dropout: the class of these layers has both options, and the model takes them by these names.
# Seen: the layers of the model are built from the dimension only. Both options are dropped without a warning: the same number of parameters,
# the same outputs from the same seed, and no noise in training. They reach the second feed-forward layers only, which exist with
# attend_axially=True or receives_context=True. Then half of the layers of a model are gated. LinearAttentionTransformerLM is the same.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet torch==2.13.0 numpy==2.4.6
"$folder/venv/bin/pip" install --quiet --no-deps linear-attention-transformer==0.19.1 einops==0.8.2 axial-positional-embedding==0.3.12 \
  linformer==0.2.3 local-attention==1.11.2 hyper-connections==0.4.11 torch-einops-utils==0.2.0 product-key-memory==0.1.10
cd "$folder"
"$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import torch
from linear_attention_transformer import LinearAttentionTransformer
from linear_attention_transformer.linear_attention_transformer import FeedForward

print(f'linear-attention-transformer {version("linear-attention-transformer")}')
dim = 16


def model(**options):
    torch.manual_seed(0)
    return LinearAttentionTransformer(dim=dim, heads=2, depth=2, max_seq_len=8, **options)


def count(module):
    return sum(p.numel() for p in module.parameters())


x = torch.randn(1, 8, dim)
plain, gated = model(), model(ff_glu=True, ff_dropout=0.9)
more = count(FeedForward(dim, glu=True)) - count(FeedForward(dim))
print(f'parameters of two layers: {count(plain)}, with ff_glu=True {count(gated)}, expected {count(plain) + 2 * more}')
assert count(plain) == count(gated) and more > 0, 'this has changed'
same, noise = torch.equal(plain(x), gated(x)), not torch.equal(gated(x), gated(x))
print(f'same outputs from the same seed: {same}, ff_dropout=0.9 changes outputs in training: {noise}')
assert same and not noise, 'this has changed'
layer = FeedForward(dim, glu=True, dropout=0.9)
assert not torch.equal(layer(x), layer(x))

axial = model(ff_glu=True, attend_axially=True, local_attn_window_size=4)
kinds = [module.glu for module in axial.modules() if isinstance(module, FeedForward)]
print(f'feed-forward layers are gated, with attend_axially=True: {kinds}')
assert kinds == [False, True, False, True], 'this has changed'
PY
