#!/usr/bin/env bash
# torch-geometric 2.8.1: the transform NormalizeRotation mirrors a point cloud.
#
# Expected: documented as "rotates all points according to the eigenvectors of the point cloud". A rotation keeps the handedness:
# the signed volume of four points does not change. A left and a right hand (or molecule) stay different.
# Seen: the points are multiplied by the matrix of eigenvectors, whose determinant may be -1. Whether it is depends on the
# linear algebra library. Random clouds are mirrored here, the normals with them.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet torch==2.13.0 torch-geometric==2.8.1
cd "$folder"
"$folder/venv/bin/python" - <<'PY'
import torch
import torch_geometric
from torch_geometric.data import Data
from torch_geometric.transforms import NormalizeRotation


def volume(pos):
    return torch.linalg.det(pos[1:4] - pos[0]).item()


torch.manual_seed(0)
print(f'torch-geometric {torch_geometric.__version__}')
clouds = [torch.randn(20, 3) for _ in range(100)]
pairs = [(volume(pos), volume(NormalizeRotation()(Data(pos=pos.clone())).pos)) for pos in clouds]
mirrored = sum(before * after < 0 for before, after in pairs)
print('signed volume of the first four points, before and after:', *[f'{a:.3f} {b:.3f}' for a, b in pairs[:2]], sep='\n  ')
print(f'mirrored: {mirrored} of {len(clouds)} clouds')
assert all(abs(abs(a) - abs(b)) < 1e-3 for a, b in pairs) and mirrored > 0, 'this has changed'
PY
