#!/usr/bin/env bash
# x-transformers 2.31.10: with shift_tokens, generation with cached keys gives other tokens, and padding is shifted into the sequence.
#
# Expected: shift_tokens: "The feature dimension will be divided by shift_tokens + 1 and then each chunk will be shifted [0, shift_tokens]
# respectively" (README, pypi.org/project/x-transformers). generate gives the same tokens with and without cached keys and values, as for
# other options: the network says with can_cache_kv whether it may cache. The mask of an Encoder hides padding.
# Seen: with a cache, the layers get only the new token, and the features that come from the token before it are 0. can_cache_kv is True for
# it, and cache_kv is the default of generate: nearly all of the tokens differ. In an Encoder, shifts go in both directions. ShiftTokens in
# x_transformers.py sets masked tokens to 0, but the feedforward layers get no mask: the last output before padding depends on it.
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
from x_transformers import AutoregressiveWrapper, Decoder, Encoder, TransformerWrapper

print(f'x-transformers {version("x-transformers")}')
torch.manual_seed(0)
def perturbed(model):
    """Some layers start as 0, and would hide a difference."""
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.2)
    return model.eval()


prompts = torch.randint(0, 50, (8, 5))
for shift in (0, 1):
    decoder = Decoder(dim=32, depth=2, heads=4, rotary_pos_emb=True, verbose=False, shift_tokens=shift)
    model = perturbed(AutoregressiveWrapper(TransformerWrapper(num_tokens=50, max_seq_len=64, attn_layers=decoder)))
    with torch.no_grad():
        full = model.net(prompts)
        causal = (full[:, :3] - model.net(prompts[:, :3])).abs().max().item()
        _, cache = model.net(prompts[:, :4], return_intermediates=True)
        difference = (model.net(prompts, cache=cache)[:, -1] - full[:, -1]).abs().max().item()
    cached, uncached = (model.generate(prompts, 10, temperature=0.0, cache_kv=cache) for cache in (True, False))
    # By the definition: the likeliest token, given all before.
    tokens = prompts
    for _ in range(10):
        tokens = torch.cat([tokens, model.net(tokens)[:, -1].argmax(-1, keepdim=True)], dim=1)
    same = [(generated == tokens[:, 5:]).float().mean().item() for generated in (cached, uncached)]
    print(f'shift_tokens={shift}: can_cache_kv {model.net.can_cache_kv}. Logits with a cache differ by up to {difference:.3f}. Right tokens '
          f'with cached keys {same[0]:.0%}, without {same[1]:.0%}')  # fmt: skip
    assert causal < 1e-4 and same[1] == 1 and model.net.can_cache_kv, 'this has changed'
    assert difference > 0.1 and same[0] < 0.6 if shift else difference < 1e-3 and same[0] == 1, 'this has changed'

sequence, mask = torch.randn(1, 7, 32), torch.arange(7)[None] < 5
other = torch.where(mask[..., None], sequence, torch.randn(1, 7, 32))
for shift in (0, 1):
    encoder = perturbed(Encoder(dim=32, depth=1, heads=4, rotary_pos_emb=True, verbose=False, shift_tokens=shift))
    with torch.no_grad():
        outputs = [encoder(x, mask=mask)[0, :5] for x in (sequence, other)]
    change = (outputs[0] - outputs[1]).abs().amax(1)
    print(f'Encoder, shift_tokens={shift}: changes of the 5 outputs with another content of padding {change.numpy().round(3)}')
    assert change[4] > 0.05 if shift else change.max() < 1e-4, 'this has changed'
PY
