#!/usr/bin/env bash
# rotary-embedding-torch 0.9.1: offsets of get_axial_freqs are lost, or they move all later positions, depending on what ran before.
#
# Expected: get_axial_freqs(4, 4, offsets=(2, 0)) has the frequencies of the positions 2 to 5 of the first axis. What one asked for before
# does not matter.
# Seen: with freqs_for="lang" (as by default) and "constant", frequencies are cached by length, and get_axial_freqs does not tell the cache
# about the offset. After any call with at least this length, offsets are ignored. If the first call has offsets, its frequencies are
# stored as those of the positions 0, 1, ...: rotate_queries_or_keys of this object then rotates by wrong positions, and the second axis
# gets the offset of the first. cache_if_possible=False is right.
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
offsets = (2, 0)


def positions(rotary):
    # The first frequency is 1, so that the first channel of an axis is the position.
    freqs = rotary.get_axial_freqs(4, 4, offsets=offsets)
    return freqs[:, 0, 0].tolist(), freqs[0, :, 8].tolist()


right = ([2.0, 3.0, 4.0, 5.0], [0.0, 1.0, 2.0, 3.0])
print(f'positions by the definition: {right}')
fresh, used, plain = RotaryEmbedding(8), RotaryEmbedding(8), RotaryEmbedding(8, cache_if_possible=False)
used.get_axial_freqs(4, 4)
for name, rotary, expected in (
    ('without a cache', plain, right),
    ('first call', fresh, (right[0], right[0])),
    ('after a call without offsets', used, (right[1], right[1])),
):
    seen = positions(rotary)
    print(f'{name}: {seen}')
    assert seen == expected, 'this has changed'

# One query and its rotation by the definition: pairs of channels are rotated by position * 10000^(-2i/d).
query = torch.arange(1.0, 33.0).view(1, 1, 4, 8)
angle = torch.arange(4.0).view(4, 1) * 10000.0 ** (-torch.arange(0, 8, 2) / 8)
turned = torch.view_as_real(torch.view_as_complex(query.view(4, 4, 2)) * torch.polar(torch.ones_like(angle), angle)).reshape(query.shape)
for name, rotary in (('a new object', RotaryEmbedding(8)), ('the one of the first call', fresh)):
    error = (rotary.rotate_queries_or_keys(query) - turned).abs().max().item()
    print(f'rotate_queries_or_keys of {name}: off by {error:.4f}')
    assert error < 1e-4 if name == 'a new object' else error > 1, 'this has changed'
PY
