#!/usr/bin/env bash
# gpytoolbox 0.3.8: the rotation matrix between opposite vectors in 3D is a reflection, of determinant -1.
#
# Expected: rotation_matrix_from_vectors finds "the rotation matrix that aligns one vector to another", and "the output matrix
# will always be a pure rotation matrix" (docstring). Of opposite vectors, this is a half turn about any normal of them.
# Seen: for a vector and its negative, the result is the negative of the identity. It mirrors all points at the origin: a right
# hand becomes a left hand, and a mesh turns inside out, with a negative volume. Vectors that are nearly opposite get a half
# turn.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet gpytoolbox==0.3.8 numpy==2.4.6 scipy==1.17.1
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import numpy as np
from gpytoolbox import icosphere, rotation_matrix_from_vectors

print(f'gpytoolbox {version("gpytoolbox")}')
vertices, faces = icosphere(2)


def volume(points):
    a, b, c = (points[faces[:, i]] for i in range(3))
    return (a * np.cross(b, c)).sum() / 6


for first in ([0, 0, 1.0], [1.0, 2, 3], [-2.0, 1, 0.5]):
    first = np.array(first)
    for name, second in (('same', first), ('nearly opposite', -first + [0, 1e-6, 1e-6]), ('opposite', -first)):
        matrix = rotation_matrix_from_vectors(first, second)
        aligned = np.allclose(matrix @ first / np.linalg.norm(first), second / np.linalg.norm(second), atol=1e-6)
        determinant, turned = np.linalg.det(matrix), volume(vertices @ matrix.T)
        print(f'{first}, {name}: aligned {aligned}, determinant {determinant:.3f}, volume of a sphere {volume(vertices):.3f}, '
              f'turned {turned:.3f}')  # fmt: skip
        assert aligned and np.allclose(matrix @ matrix.T, np.eye(3), atol=1e-6), 'this has changed'
        assert np.isclose(determinant, -1 if name == 'opposite' else 1), 'this has changed'

# By the definition: a half turn about a normal.
normal = np.cross(first, [1.0, 0, 0])
normal /= np.linalg.norm(normal)
half = 2 * np.outer(normal, normal) - np.eye(3)
print(f'half turn: aligned {np.allclose(half @ first, -first)}, determinant {np.linalg.det(half):.3f}')
assert np.allclose(half @ first, -first) and np.isclose(np.linalg.det(half), 1), 'this has changed'
PY
