#!/usr/bin/env bash
# graphein 1.7.8: the backbone angles of a protein are wrong in a batch of three proteins, and wrong at its end beside a longer one.
#
# Expected: graphein.protein.tensor.angles.dihedrals takes a batch vector. The angles of a protein do not depend on others in its batch,
# and psi of the last residue, which has no next residue, is 0, as it is for a protein alone.
# Seen: torch.cross is called without its argument dim, and takes the first dimension of size 3. In a batch of three proteins, this is
# the batch: all angles are mixtures of the three. For a single protein of four residues, it is the chain. And proteins are padded
# with residues at the origin, which count as a next residue: psi at the end of each shorter protein is an arbitrary
# number, and changes if the protein is moved. There is no error. sidechain_torsion and alpha use the same function.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet torch==2.13.0 torch-geometric==2.8.1 graphein==1.7.8 einops==0.8.2 numpy==1.26.4
cd "$folder"
"$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import numpy as np
import torch
from graphein.protein.tensor.angles import dihedrals


def angle(a, b, c, d):
    u, v, w = b - a, c - b, d - c
    return np.arctan2(np.linalg.norm(v) * u @ np.cross(v, w), np.cross(u, v) @ np.cross(v, w))


def by_definition(protein):  # phi, psi and omega of the atoms N, CA and C of each residue.
    atoms, angles = protein.double().numpy().reshape(-1, 3), np.zeros((len(protein), 3))
    for i in range(len(protein) - 1):
        angles[i, 1:] = angle(*atoms[3 * i : 3 * i + 4]), angle(*atoms[3 * i + 1 : 3 * i + 5])
        angles[i + 1, 0] = angle(*atoms[3 * i + 2 : 3 * i + 6])
    return torch.from_numpy(angles)


print(f'graphein {version("graphein")}')
rng = torch.Generator().manual_seed(0)
seen = {}
for lengths in ((6,), (6, 6), (6, 6, 6), (6, 6, 6, 6), (4,), (6, 9)):
    proteins = [torch.randn(3 * n, 3, generator=rng).cumsum(0).view(n, 3, 3) for n in lengths]
    batch = torch.arange(len(lengths)).repeat_interleave(torch.tensor(lengths))
    result = dihedrals(torch.cat(proteins), batch, embed=False).split(lengths)
    errors = [(got - by_definition(protein)).abs() for got, protein in zip(result, proteins)]
    seen[lengths] = [round(error.max().item(), 3) for error in errors]
    print(f'proteins of {lengths} residues: the largest errors of the angles are {seen[lengths]}')
assert all(max(seen[lengths]) == 0 for lengths in ((6,), (6, 6), (6, 6, 6, 6))), 'this has changed'
assert min(seen[6, 6, 6]) > 0.5 and min(seen[4,]) > 0.5 and seen[6, 9][0] > 0.5 and seen[6, 9][1] == 0, 'this has changed'
assert errors[0][:-1].max() < 1e-3 and (errors[0][-1] > 1e-3).tolist() == [False, True, False], 'this has changed'  # (6, 9)
PY
