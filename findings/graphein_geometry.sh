#!/usr/bin/env bash
# graphein 1.7.8: kabsch(allow_reflections=False) superimposes a protein on its mirror image, and centroids of side chains are near 0.
#
# Expected: kabsch aligns point clouds by rotation and translation, with reflections only on request: allow_reflections is False. The best
# rotation has the determinant 1. coarsen_sidechain returns a "Tensor of sidechain centroids" for atoms in 37 slots, of which
# most are missing in each residue and hold 1e-5. Centroids move with the protein.
# Seen: kabsch prints "Flipping!", and flips nothing: the matrix has the determinant -1, and the mirror image has the distance 0. Proteins
# are chiral, so that a wrong model scores as a perfect one. coarsen_sidechain averages all 33 slots beside the backbone: the centroid
# of alanine, whose side chain is one atom, is a 33rd of this atom's position, and hardly moves with the protein.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet torch==2.13.0 torch-geometric==2.8.1 graphein==1.7.8 einops==0.8.2 numpy==1.26.4
cd "$folder"
"$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import torch
from graphein.protein.tensor.geometry import kabsch
from graphein.protein.tensor.representation import coarsen_sidechain
from scipy.spatial.transform import Rotation

print(f'graphein {version("graphein")}')
torch.manual_seed(0)
atoms = torch.randn(20, 3).double() * 5
turned = atoms @ torch.from_numpy(Rotation.from_euler('xyz', [0.3, 0.8, -0.5]).as_matrix()).T + 7
mirror = turned * torch.tensor([1.0, 1.0, -1.0])
seen = {}
for name, target in (('turned', turned), ('mirror image', mirror)):
    aligned = kabsch(atoms, target, allow_reflections=False)
    rotation, _ = kabsch(atoms, target, allow_reflections=False, return_transformed=False)
    _, right = Rotation.align_vectors(target - target.mean(0), atoms - atoms.mean(0))  # The square root of the sum of squares.
    seen[name] = (aligned - target).norm().item(), right, torch.linalg.det(rotation).item()
    print('{}: distance {:.3f}, of the best rotation by SciPy {:.3f}, determinant {:.3f}'.format(name, *seen[name]))
assert max(seen['turned'][:2]) < 1e-6 and seen['mirror image'][0] < 1e-6 < 10 < seen['mirror image'][1], 'this has changed'
assert seen['mirror image'][2] < 0, 'this has changed'

alanine = torch.full((1, 37, 3), 1e-5)
alanine[0, :5] = torch.tensor([[-0.5, 1.4, 0.0], [0.0, 0.0, 0.0], [1.5, 0.0, 0.0], [2.1, 1.0, 0.3], [-0.5, -0.8, 1.2]])  # N CA C O CB
moved = torch.where(alanine == 1e-5, alanine, alanine + 10)
centroids = [coarsen_sidechain(x)[0] for x in (alanine, moved)]
for name, x, centroid in zip(('alanine', 'moved by 10'), (alanine, moved), centroids):
    print(f'{name}: the atom of the side chain is at {x[0, 4].tolist()}, the centroid at {[round(c, 3) for c in centroid.tolist()]}')
    assert torch.allclose(centroid, (x[0, 4] + 32e-5) / 33, atol=1e-4), 'this has changed'
PY
