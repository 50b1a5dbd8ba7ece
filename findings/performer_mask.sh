#!/usr/bin/env bash
# performer-pytorch 1.1.4: masked keys stay in the denominator of attention, so that outputs depend on the amount and content of padding.
#
# Expected: SelfAttention(x, mask=mask) leaves out the keys that are False in the mask, as softmax attention does, which it approximates. So
# a padded sequence has the outputs of the sequence without padding. The same for context_mask.
# Seen: the mask sets the values of masked keys to zero, and not their features. The sum of the features that attention is divided by
# counts them: outputs shrink with each padded token, by an amount that depends on its content, as its features do. If the features are
# masked as well, all agree. The example has ReLU features, which are easy to compute by hand, and two kinds of padding.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet torch==2.13.0 numpy==2.4.6
"$folder/venv/bin/pip" install --quiet --no-deps performer-pytorch==1.1.4 einops==0.8.2 axial-positional-embedding==0.3.12 \
  local-attention==1.11.2 hyper-connections==0.4.11 torch-einops-utils==0.2.0
cd "$folder"
"$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import torch
from performer_pytorch import SelfAttention

print(f'performer-pytorch {version("performer-pytorch")}')
torch.manual_seed(0)
dim, n = 8, 6
attention = SelfAttention(dim=dim, heads=1, dim_head=dim, nb_features=32, generalized_attention=True).eval()
x = torch.randn(1, n, dim)
w = attention.fast_attention.projection_matrix


@torch.no_grad()
def direct(x, keep):
    # Features relu(w.x / d^(1/4)) + 0.001 of queries and keys. Masked keys are left out.
    q, k = (((layer(x) * dim**-0.25) @ w.t()).relu() + 0.001 for layer in (attention.to_q, attention.to_k))
    weight = (q @ k.transpose(1, 2)) * keep.view(1, 1, -1)
    return attention.to_out(weight / weight.sum(-1, keepdim=True) @ attention.to_v(x))


with torch.no_grad():
    alone = attention(x)
right = direct(x, torch.ones(n))
assert alone.allclose(right, atol=1e-5), 'this has changed'
errors = []
for added, content in ((0, 0.0), (6, 0.0), (6, 1.0), (60, 0.0), (60, 1.0)):
    padded = torch.cat([x, torch.full((1, added, dim), content)], dim=1)
    mask = (torch.arange(n + added) < n).view(1, -1)
    with torch.no_grad():
        seen = attention(padded, mask=mask)[:, :n]
    errors.append((seen - right).abs().max().item())
    masked = (direct(padded, mask.float())[:, :n] - right).abs().max()
    print(f'{added} padded tokens of content {content}: off by {errors[-1]:.4f}, keys left out {masked:.4f} '
          f'(outputs up to {right.abs().max():.2f})')  # fmt: skip
    assert masked < 1e-5
assert errors[0] < 1e-5 and min(errors[1:]) > 3e-4 and min(errors[2], errors[4]) > 0.1, 'this has changed'
PY
