#!/usr/bin/env bash
# rotary-embedding-torch 0.9.1: with xpos, scores from cached keys differ from those of the whole sequence.
#
# Expected: rotate_queries_with_cached_keys is for inference with a cache: it takes the last queries and all keys, and gives the
# scores that rotate_queries_and_keys gives for the whole sequence. In xpos (Sun et al. 2022), a score depends on the distance of query and
# key: it decays by scale^(distance / base).
# Seen: the power of the scale is the position minus half of the number of positions. This constant cancels only if queries and keys have
# the same one. The last queries alone are fewer than the keys, so that a factor scale^((keys - queries) / 2 / base) remains,
# which differs among channels and grows with the text. Scores of generation step by step are not those of training. Without xpos they are.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet torch==2.13.0 numpy==2.4.6
"$folder/venv/bin/pip" install --quiet --no-deps rotary-embedding-torch==0.9.1 einops==0.8.2
cd "$folder"
"$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import torch
from rotary_embedding_torch import RotaryEmbedding

print(f'rotary-embedding-torch {version("rotary-embedding-torch")}')
torch.manual_seed(0)
dim, base = 32, 512


def direct(q, k, xpos):
    # By the definition: the channels of a pair are a complex number, turned by the angle, and scaled by the decay, of the distance.
    n = k.size(0)
    freq = 10000.0 ** (-torch.arange(0, dim, 2) / dim)
    scale = (torch.arange(0, dim, 2) + 0.4 * dim) / (1.4 * dim) if xpos else torch.ones(dim // 2)
    distance = torch.arange(n).view(n, 1, 1) - torch.arange(n).view(1, n, 1)
    turn = torch.polar(scale ** (distance / base), distance * freq)
    q, k = (torch.view_as_complex(x.view(n, dim // 2, 2)) for x in (q, k))
    return (q.view(n, 1, -1) * k.conj() * turn).real.sum(-1)


for n in (64, 1024):
    q, k = torch.randn(2, 1, 1, n, dim).unbind(0)
    for xpos in (False, True):
        right = direct(q[0, 0], k[0, 0], xpos)
        rotary = RotaryEmbedding(dim, use_xpos=xpos, xpos_scale_base=base)
        if xpos:
            full = rotary.rotate_queries_and_keys(q, k)
        else:
            full = rotary.rotate_queries_or_keys(q), rotary.rotate_queries_or_keys(k)
        # Generation: one query, the last one, and all keys.
        step = rotary.rotate_queries_with_cached_keys(q[:, :, -1:], k)
        whole, cached = ((a @ b.transpose(-1, -2))[0, 0, -1] for a, b in (full, step))
        size = right[-1].norm()
        print(f'{n} tokens, xpos={xpos}: relative error of the last scores, whole sequence {(whole - right[-1]).norm() / size:.5f}, '
              f'cached keys {(cached - right[-1]).norm() / size:.5f}')  # fmt: skip
        assert whole.allclose(right[-1], atol=1e-2), 'this has changed'
        if xpos:
            assert (cached - right[-1]).norm() / size > (0.02 if n == 64 else 0.3), 'this has changed'
        else:
            assert cached.allclose(right[-1], atol=1e-2), 'this has changed'
PY
