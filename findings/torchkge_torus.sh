#!/usr/bin/env bash
# torchkge 0.17.7: two of the three distances on the torus of TorusEModel are no distances: negative for L1, and another one for L2.
#
# Expected: the documentation refers to the paper of TorusE (Ebisu and Ichise 2018). A torus has no borders: 0.05 and 0.95 are 0.1 apart,
# and x and x + 1 are one point. The scores are 2 times the L1 distance, and 4 times the squared L2 distance: both at least 0.
# torus_eL2, the third one, is periodic, as it should be.
# Seen: the model compares h + r with t without taking h + r back to the torus. torus_L1 has min(d, 1 - d), which is right for d <= 1 only.
# For h + r - t = 1.5, opposite points, it is -1 instead of 1: better than for one and the same point, so that training pulls true
# triplets there. torus_L2 has 1 - d^2 for (1 - d)^2: points that are 0.1 apart get 0.76 instead of 0.04, and opposite ones -5.
# The tests of the package name the right values, but compare without the absolute value.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet torch==2.13.0 torchkge==0.17.7 pandas==2.3.3 numpy==2.4.6
cd "$folder"
"$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import torch
from torchkge.models import TorusEModel

print(f'torchkge {version("torchkge")}')
zero, one = torch.tensor([0]), torch.tensor([1])
seen = {}
for case, (h, r, t) in {
    'one point': (0.25, 0.5, 0.75),
    '0.1 apart': (0.25, 0.5, 0.85),
    '0.1 apart, across the border': (0.03, 0.02, 0.95),
    'opposite points, across the border': (0.95, 0.95, 0.4),
}.items():
    apart = torch.tensor((h + r - t) % 1.0)
    apart = torch.minimum(apart, 1 - apart)
    # The equations of the paper: for L1, L2, and for eL2 the squared chord of the unit circle, which the package divides by 4.
    right = {'torus_L1': 2 * apart, 'torus_L2': 4 * apart**2, 'torus_eL2': (2 - 2 * torch.cos(2 * torch.pi * apart)) / 4}
    for kind, expected in right.items():
        model = TorusEModel(1, 2, 1, kind)
        model.ent_emb.weight.data[:] = torch.tensor([[h], [t]])
        model.rel_emb.weight.data[:] = r
        value = -model.scoring_function(zero, one, zero).item()
        if abs(value - expected) > 1e-4:
            seen[case, kind] = round(value, 3)
        print(f'{case}, {kind}: {value:.3f}, by the equation {expected:.3f}')
wrong = {('0.1 apart, across the border', 'torus_L2'): 0.76}
wrong |= {('opposite points, across the border', 'torus_L1'): -1.0, ('opposite points, across the border', 'torus_L2'): -5.0}
assert seen == wrong, 'this has changed'
PY
