#!/usr/bin/env bash
# x-transformers 2.31.10: generation with data dependent ALiBi gives other tokens with cached keys, which is the default, than without.
#
# Expected: attn_data_dependent_alibi is the "Forgetting Transformer: Softmax Attention with a Forget Gate" (README,
# pypi.org/project/x-transformers): the logit of a key is lowered by the sum of the forget gates of all tokens after it. generate gives the
# same tokens with and without cached keys and values: the network says with can_cache_kv whether it may cache.
# Seen: with a cache, Attention in x_transformers.py computes the gates of the new token alone. The bias is 1 x 1, that of a token to itself,
# 0, and is added to the logits of all keys: nothing is forgotten. can_cache_kv is False for selective attention alone. With
# data_dependent_alibi_per_row, nearly all tokens differ. With memory keys as well, generation fails: the shapes do not match.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet torch==2.13.0 numpy==2.4.6 einops==0.8.2 einx==0.4.3 loguru==0.7.3 torch-einops-utils==0.2.0 packaging==26.4
"$folder/venv/bin/pip" install --quiet --no-deps x-transformers==2.31.10
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import torch
from x_transformers import AutoregressiveWrapper, Decoder, TransformerWrapper

print(f'x-transformers {version("x-transformers")}')
torch.manual_seed(0)
def perturbed(model):
    """Some layers start as 0, and would hide a difference."""
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.2)
    return model.eval()


prompts = torch.randint(0, 50, (8, 5))
for options in ({}, {'alibi_pos_bias': True}, {'attn_selective': True}, {'attn_data_dependent_alibi': True},
                {'attn_data_dependent_alibi': True, 'attn_data_dependent_alibi_per_row': True}):  # fmt: skip
    decoder = Decoder(dim=32, depth=2, heads=4, verbose=False, **options)
    model = perturbed(AutoregressiveWrapper(TransformerWrapper(num_tokens=50, max_seq_len=64, attn_layers=decoder)))
    with torch.no_grad():
        full = model.net(prompts)
        causal = (full[:, :3] - model.net(prompts[:, :3])).abs().max().item()
    cached, uncached = (model.generate(prompts, 16, temperature=0.0, cache_kv=cache) for cache in (True, False))
    # By the definition: the likeliest token, given all before.
    tokens = prompts
    for _ in range(16):
        tokens = torch.cat([tokens, model.net(tokens)[:, -1].argmax(-1, keepdim=True)], dim=1)
    same = [(generated == tokens[:, 5:]).float().mean().item() for generated in (cached, uncached)]
    print(f'{options or "no option"}: can_cache_kv {model.net.can_cache_kv}. Right tokens with cached keys {same[0]:.0%}, without {same[1]:.0%}')
    assert causal < 1e-4 and same[1] == 1, 'this has changed'
    if 'attn_data_dependent_alibi' in options:
        assert model.net.can_cache_kv and same[0] < 0.9, 'this has changed'
        _, cache = model.net(prompts[:, :4], return_intermediates=True)
        gates = decoder.layers[0][1].data_dependent_alibi(torch.randn(1, 1, 32))
        assert gates.shape[-2:] == (1, 1) and not gates.any(), 'this has changed'
    else:
        assert same[0] == 1, 'this has changed'

decoder = Decoder(dim=32, depth=2, heads=4, verbose=False, attn_data_dependent_alibi=True, attn_num_mem_kv=2)
model = AutoregressiveWrapper(TransformerWrapper(num_tokens=50, max_seq_len=64, attn_layers=decoder)).eval()
model.generate(prompts, 3, cache_kv=False)
try:
    model.generate(prompts, 3)
except RuntimeError as e:
    print(f'with attn_num_mem_kv=2: {e}')
else:
    raise AssertionError('this has changed')
PY
