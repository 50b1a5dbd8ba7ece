#!/usr/bin/env bash
# nystrom-attention 0.0.14: without a mask, tokens attend to the zeros that the layer itself adds to fill up its landmarks.
#
# Expected: the layer pads a sequence to a multiple of num_landmarks, which is its own affair: a mask of ones, or none, give the same
# output. With one token per landmark, it is plain softmax attention (Xiong et al. 2021, section 3.2). A mean of values that are all 1 is
# 1.
# Seen: without a mask, added tokens are keys with score 0 and value 0, and are in the means of the landmarks. With the default of 256
# landmarks and 5 tokens, 251 of 256 keys are zeros, and the mean of ones is 0.11 below. The fewer tokens, the smaller the output. The
# mask is padded rightly, so that a mask of ones helps. Lengths that are multiples of num_landmarks are right. Nystromformer has it as
# well.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet torch==2.13.0 numpy==2.4.6
"$folder/venv/bin/pip" install --quiet --no-deps nystrom-attention==0.0.14 einops==0.8.2
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import numpy as np
import torch
from nystrom_attention import NystromAttention, Nystromformer

print(f'nystrom-attention {version("nystrom-attention")}')
dim = 4


def build(landmarks):
    torch.manual_seed(0)
    layer = NystromAttention(dim, dim_head=dim, heads=1, num_landmarks=landmarks, pinv_iterations=20, residual=False)
    with torch.no_grad():
        layer.to_qkv.weight *= 2
        layer.to_out[0].weight.copy_(torch.eye(dim))
        layer.to_out[0].bias.zero_()
    return layer.eval()


def attention(x, layer):
    q, k, v = np.split(x.numpy() @ layer.to_qkv.weight.detach().numpy().T, 3, axis=1)
    weights = np.exp(q @ k.T / np.sqrt(dim))
    return weights / weights.sum(1, keepdims=True) @ v


with torch.no_grad():
    for n in (5, 8):  # Eight landmarks: one for each token.
        x = torch.randn(1, n, dim, generator=torch.Generator().manual_seed(n))
        layer, ones = build(8), torch.ones(1, n, dtype=torch.bool)
        right = attention(x[0], layer)
        added = attention(torch.cat((torch.zeros(8 - n, dim), x[0])), layer)[8 - n :]
        free, masked = layer(x)[0].numpy(), layer(x, mask=ones)[0].numpy()
        print(f'{n} tokens, 8 landmarks: distance from plain attention without a mask {np.abs(free - right).max():.4f}, '
              f'with a mask of ones {np.abs(masked - right).max():.4f}. '
              f'Without one, from attention to {8 - n} zeros as well {np.abs(free - added).max():.4f}')  # fmt: skip
        assert np.allclose(masked, right, atol=1e-3) and np.allclose(free, added, atol=1e-3), 'this has changed'
        assert (np.abs(free - right).max() > 0.05) == (n == 5), 'this has changed'

    for n, landmarks in ((5, 256), (200, 256), (256, 256), (257, 256), (9, 4), (8, 4)):
        layer = build(landmarks)
        layer.to_qkv.weight[2 * dim :] = 0
        layer.to_qkv.weight[2 * dim :, 0] = 1
        x = torch.randn(1, n, dim, generator=torch.Generator().manual_seed(n))
        x[..., 0] = 1  # The value of each token.
        free = float(layer(x)[0, :, 0].mean())
        masked = float(layer(x, mask=torch.ones(1, n, dtype=torch.bool))[0, :, 0].mean())
        print(f'{n} tokens, {landmarks} landmarks: mean of ones {free:.3f}, with a mask of ones {masked:.3f}, expected 1')
        assert np.isclose(masked, 1, atol=1e-3) and (free < 0.95) == (n % landmarks > 0), 'this has changed'

    torch.manual_seed(0)
    model = Nystromformer(dim=dim, depth=1, heads=1, dim_head=dim, num_landmarks=4).eval()
    for n in (9, 8):
        x = torch.randn(1, n, dim)
        difference = float((model(x) - model(x, mask=torch.ones(1, n, dtype=torch.bool))).abs().max())
        print(f'Nystromformer, {n} tokens, 4 landmarks: a mask of ones changes the output by {difference:.4f}')
        assert (difference > 1e-3) == (n == 9), 'this has changed'
PY
