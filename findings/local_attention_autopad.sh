#!/usr/bin/env bash
# local-attention 1.11.2: with autopad, attention that is not causal attends to its own padding, unless one passes a mask of ones.
#
# Expected: LocalAttention(autopad=True) pads inputs and mask to a multiple of the window, and cuts the output again. So the padding should
# not be seen. A mask of ones says that all inputs are real, as no mask does.
# Seen: padding of keys has true positions, and only the mask hides it. Without a mask, added zeros have the logit 0 and the value 0 in the
# softmax. The weights of the real keys no longer sum to one: outputs near the end of the sequence shrink. A mask of ones
# changes the result. If the window divides the length, or causal=True, both agree. LocalMHA always uses autopad.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet torch==2.13.0 numpy==2.4.6
"$folder/venv/bin/pip" install --quiet --no-deps local-attention==1.11.2 einops==0.8.2 hyper-connections==0.4.11 torch-einops-utils==0.2.0
cd "$folder"
"$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import torch
from local_attention import LocalAttention

print(f'local-attention {version("local-attention")}')
torch.manual_seed(0)
window = 4


def direct(q, k, v, causal):
    # By the definition: a query sees the keys of its own window and of the windows before and after it.
    n = q.size(1)
    block = torch.arange(n) // window
    far = (block.view(-1, 1) - block).abs() > 1
    if causal:
        far = far | (torch.arange(n) > torch.arange(n).view(-1, 1))
    score = (q @ k.transpose(1, 2) / q.size(-1) ** 0.5).masked_fill(far, float('-inf'))
    return score.softmax(-1) @ v


for causal in (False, True):
    for n in (12, 9):
        q, k, v = torch.randn(3, 1, n, 8).unbind(0)
        attention = LocalAttention(window, causal=causal, autopad=True, look_backward=1, look_forward=0 if causal else 1)
        right = direct(q, k, v, causal)
        plain, ones = attention(q, k, v), attention(q, k, v, mask=torch.ones(1, n, dtype=torch.bool))
        mass = attention(q, k, torch.ones_like(v))[0, :, 0]  # Values of one: the sum of the weights.
        error, error_ones = (plain - right).abs().max().item(), (ones - right).abs().max().item()
        print(f'causal={causal}, length {n}: error {error:.4f}, with a mask of ones {error_ones:.4f}. '
              f'Sum of the weights of real keys: {[round(m, 2) for m in mass.tolist()]}')  # fmt: skip
        assert error_ones < 1e-5, 'this has changed'
        if n == 9 and not causal:
            assert error > 0.05 and mass[:4].allclose(torch.ones(4)) and mass[4:].max() < 0.99, 'this has changed'
        else:
            assert error < 1e-5 and mass.allclose(torch.ones(n)), 'this has changed'
PY
