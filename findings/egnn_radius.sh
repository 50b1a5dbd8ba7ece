#!/usr/bin/env bash
# egnn-pytorch 0.2.8: valid_radius has no effect without a mask, and with a mask it is compared with the square of the distance.
#
# Expected: EGNN(valid_radius=r) sends messages between points at most r apart. A mask of ones changes nothing.
# Seen: the comparison is made with the squared distance: valid_radius=2 ends at distance 1.41, and valid_radius=0.5 reaches to 0.71. It
# is only read with num_nearest_neighbors, and of these only with a mask. Without one, far points send messages, and move each other. A
# mask of ones then changes the output. In se3-transformer-pytorch, the same option is a distance.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet torch==2.13.0 numpy==2.4.6
"$folder/venv/bin/pip" install --quiet --no-deps egnn-pytorch==0.2.8 einops==0.8.2
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import numpy as np
import torch
from egnn_pytorch import EGNN

print(f'egnn-pytorch {version("egnn-pytorch")}')
places = np.array([0, 0.6, 1.5, 3.2, 5.6])  # On a line.
coors = torch.zeros(1, len(places), 3)
coors[0, :, 0] = torch.from_numpy(places)
distance = np.abs(places[:, None] - places[None])
torch.manual_seed(0)
feats = torch.randn(1, len(places), 4)
ones = torch.ones(1, len(places), dtype=torch.bool)


def senders(radius, near, mask):
    """Which points change the new features of a point, by their own features."""
    torch.manual_seed(1)
    layer = EGNN(dim=4, valid_radius=radius, num_nearest_neighbors=near, init_eps=1.0)
    found = np.zeros((len(places), len(places)), dtype=int)
    with torch.no_grad():
        before = layer(feats, coors, mask=mask)[0]
        for j in range(len(places)):
            other = feats.clone()
            other[0, j] += 1
            found[:, j] = (layer(other, coors, mask=mask)[0] - before)[0].abs().amax(1) > 1e-6
    return found


def pairs(found):
    return int(np.triu(found, 1).sum())


for radius in (0.5, 1.0, 2.0):
    right = (distance <= radius).astype(int)
    squared = (distance**2 <= radius).astype(int)
    masked, free, dense = senders(radius, len(places), ones), senders(radius, len(places), None), senders(radius, 0, ones)
    print(f'valid_radius={radius}, pairs that exchange messages: with a mask {pairs(masked)}, without {pairs(free)}, '
          f'without num_nearest_neighbors {pairs(dense)}. Within this distance: {pairs(right)}, squared {pairs(squared)}')  # fmt: skip
    assert (masked == squared).all() and free.all() and dense.all(), 'this has changed'
    assert radius == 1 or (masked != right).any(), 'this has changed'
    longest = np.where(masked == 1, distance, 0).max()
    print(f'    the longest distance of a message is {longest:.1f} with a mask and {np.where(free == 1, distance, 0).max():.1f} without')
PY
