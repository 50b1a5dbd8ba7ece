#!/usr/bin/env bash
# point-transformer-pytorch 0.1.5: the multi-head layer normalizes attention over the points that ask, so that masked points leak.
#
# Expected: in MultiheadPointTransformerLayer, the weights with which a point attends to others are positive, and sum to 1 in each channel
# (Point Transformer, equation 3, a softmax over the neighbours). Masked points have weight 0, as in PointTransformerLayer of this
# package.
# Seen: the channels were moved to the front, the axis of the softmax was not. It runs over the points that ask. The weights of a point
# sum to something else than 1: where all values are 1, outputs are not. Only the weights that one point receives sum to 1. A masked point
# then has the same score from all points, and its weight is 1 / n in each of them instead of 0. With num_neighbors, the weights of the
# k-th neighbours of all points are shared among them. Outputs have the right shape, and there is no warning.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet torch==2.13.0 numpy==2.4.6
"$folder/venv/bin/pip" install --quiet --no-deps point-transformer-pytorch==0.1.5 einops==0.8.2
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import numpy as np
import torch
from point_transformer_pytorch import MultiheadPointTransformerLayer, PointTransformerLayer

print(f'point-transformer-pytorch {version("point-transformer-pytorch")}')
n, dim, heads, width = 6, 4, 2, 3
torch.manual_seed(0)
many = MultiheadPointTransformerLayer(dim=dim, heads=heads, dim_head=width, pos_mlp_hidden_dim=5, attn_mlp_hidden_mult=2)
one = PointTransformerLayer(dim=dim, pos_mlp_hidden_dim=5, attn_mlp_hidden_mult=2)
x, pos = torch.randn(1, n, dim), torch.randn(1, n, 3)
full = torch.ones(1, n, dtype=torch.bool)


@torch.no_grad()
def by_definition(axis, mask):
    """The multi-head layer in NumPy, with a softmax over the neighbours (axis 1) or over the points that ask (axis 0)."""
    p = {name: value.numpy() for name, value in many.named_parameters()}
    q, k, v = np.split(x[0].numpy() @ p['to_qkv.weight'].T, 3, axis=1)
    difference = pos[0].numpy()[:, None] - pos[0].numpy()[None]
    place = np.maximum(difference @ p['pos_mlp.0.weight'].T + p['pos_mlp.0.bias'], 0) @ p['pos_mlp.2.weight'].T + p['pos_mlp.2.bias']
    scores, hidden = np.empty((n, n, heads * width)), 2 * width
    for h in range(heads):
        own, inner = slice(h * width, h * width + width), slice(h * hidden, h * hidden + hidden)
        seen = (q[:, None] - k[None] + place)[..., own]
        first = np.maximum(seen @ p['attn_mlp.0.weight'][inner, :, 0, 0].T + p['attn_mlp.0.bias'][inner], 0)
        scores[..., own] = first @ p['attn_mlp.2.weight'][own, :, 0, 0].T + p['attn_mlp.2.bias'][own]
    kept = mask[0].numpy()
    scores[~(kept[:, None] & kept[None])] = -1e30
    weights = np.exp(scores - scores.max(axis, keepdims=True))
    weights /= weights.sum(axis, keepdims=True)
    return (weights * (v[None] + place)).sum(1) @ p['to_out.weight'].T + p['to_out.bias']


with torch.no_grad():
    seen = many(x, pos, mask=full)[0].numpy()
error, other = np.abs(seen - by_definition(1, full)).max(), np.abs(seen - by_definition(0, full)).max()
print(f'distance of the outputs from the definition {error:.3f}, from one with the other axis {other:.1e}')
assert error > 1e-2 and other < 1e-5, 'this has changed'

# A masked point: the features of others must not depend on it.
mask = full.clone()
mask[0, -1] = False
changed = x.clone()
changed[0, -1] += 100
for layer, leaks in ((one, False), (many, True)):
    with torch.no_grad():
        moved = float((layer(changed, pos, mask=mask) - layer(x, pos, mask=mask))[0, :-1].abs().max())
    print(f'{type(layer).__name__}: changing a masked point moves the outputs of the others by {moved:.3f}, expected 0')
    assert (moved > 0.1) == leaks, 'this has changed'

# All values are 1: so is each mean of them.
with torch.no_grad():
    for layer, own in ((one, dim), (many, heads * width)):
        layer.to_qkv.weight[2 * own :] = 0
        layer.pos_mlp[2].weight.zero_()
        layer.pos_mlp[2].bias.fill_(1)
    many.to_qkv.weight *= 3
    many.to_out.weight.fill_(1 / (heads * width))
    many.to_out.bias.zero_()
    means = [layer(x, pos)[0, :, 0].numpy() for layer in (one, many)]
    many.num_neighbors = 2
    near = many(x, pos)[0, :, 0].numpy()
print(f'mean of values that are all 1, single head {means[0].round(3)}, several heads {means[1].round(3)}, '
      f'of two neighbours {near.round(3)}')  # fmt: skip
assert np.allclose(means[0], 1, atol=1e-5), 'this has changed'
assert np.ptp(means[1]) > 0.02 and np.ptp(near) > 0.02, 'this has changed'
PY
