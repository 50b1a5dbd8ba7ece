#!/usr/bin/env bash
# x-transformers 2.31.10: with orthogonal residuals or values, each output of a Decoder depends on later tokens.
#
# Expected: Decoder is causal: an output depends on no later token, so that it is the same for the sequence that ends there. orthog_residual
# is "Oh et al. https://arxiv.org/abs/2505.11881" (comment in x_transformers.py; listed in the README, pypi.org/project/x-transformers): from
# the update of a token, its projection onto the residual of this token is subtracted. attn_orthog_projected_values does it with values.
# Seen: orthog_project in x_transformers.py packs all axes but the first, "b *", and subtracts one projection for the whole sequence: all
# tokens of it, and of padding, are part of each output. Of other options, the outputs do not change. Greedy generation with cached keys
# and values, which is the default, differs from that without.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet torch==2.13.0 numpy==2.4.6 einops==0.8.2 einx==0.4.3 loguru==0.7.3 torch-einops-utils==0.2.0 packaging==26.4
"$folder/venv/bin/pip" install --quiet --no-deps x-transformers==2.31.10
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import numpy as np
import torch
from x_transformers import AutoregressiveWrapper, Decoder, TransformerWrapper
from x_transformers.x_transformers import orthog_project

print(f'x-transformers {version("x-transformers")}')
torch.manual_seed(0)
def perturbed(model):
    """Some layers start as 0, and would hide a difference."""
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.2)
    return model.eval()


x, y = torch.randn(2, 1, 5, 3)
seen = orthog_project(x, y)[0].numpy()
a, b = x[0].numpy(), y[0].numpy()
by_token = a - (a * b).sum(1, keepdims=True) / (b * b).sum(1, keepdims=True) * b
by_sequence = a - (a * b).sum() / (b * b).sum() * b
print(f'inner products of the update and the residual of 5 tokens: {(seen * b).sum(1).round(3)}, right {abs((by_token * b).sum(1)).round(3)}')
assert np.allclose(seen, by_sequence, atol=1e-5) and not np.allclose(seen, by_token, atol=0.1), 'this has changed'

sequence = torch.randn(1, 8, 32)
prompts = torch.randint(0, 50, (8, 5))
for options in ({}, {'gate_residual': True}, {'orthog_residual': True}, {'attn_orthog_projected_values': True}):
    decoder = perturbed(Decoder(dim=32, depth=2, heads=4, rotary_pos_emb=True, verbose=False, **options))
    model = AutoregressiveWrapper(TransformerWrapper(num_tokens=50, max_seq_len=64, attn_layers=decoder)).eval()
    with torch.no_grad():
        difference = (decoder(sequence)[:, :5] - decoder(sequence[:, :5])).abs().max().item()
    cached, full = (model.generate(prompts, 10, temperature=0.0, cache_kv=cache) for cache in (True, False))
    same = (cached == full).float().mean().item()
    print(f'{options or "no option"}: the outputs of 5 tokens change by up to {difference:.3f} if 3 others follow. '
          f'Generated tokens that are the same with cached keys: {same:.0%}')  # fmt: skip
    leaks = any('orthog' in name for name in options)
    assert difference > 0.01 if leaks else difference < 1e-4, 'this has changed'
    assert same < 0.95 if leaks else same == 1, 'this has changed'
PY
