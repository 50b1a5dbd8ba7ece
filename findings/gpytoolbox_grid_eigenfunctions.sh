#!/usr/bin/env bash
# gpytoolbox 0.3.8: of the eigenfunctions of the Laplacian on a 3D grid, nearly all are constant, since too few modes are made.
#
# Expected: grid_laplacian_eigenfunctions returns num_modes "eigenfunctions and eigenvalues of the Laplacian on a regular grid
# with Neumann boundary conditions". Its example has two results, "vecs, vals". On a box, these are products of cosines, of the
# lowest frequencies, and no two of them are the same. "Right now, this function only works for 3D and 2D grids".
# Seen: in 3D, the frequencies of each direction are below round(sqrt(num_modes // 8)), which is 1 for 8 to 23 modes. The other
# columns stay 1: of 20 columns, all are the constant function, and of 100 columns, 27 are different. Above, the columns are not
# those of the lowest frequencies. In 2D, all are right. Only the functions are returned: "vecs, vals =" fails or unpacks rows.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet gpytoolbox==0.3.8 numpy==2.4.6 scipy==1.17.1
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version
from itertools import product

import numpy as np
from gpytoolbox import grid_laplacian_eigenfunctions

print(f'gpytoolbox {version("gpytoolbox")}')


def by_definition(sizes, lengths, modes):
    """The eigenvalues and functions of the lowest frequencies: products of the cosines of each direction."""
    axes = [np.linspace(0, length, size) for size, length in zip(sizes, lengths)]
    found = []
    for numbers in product(range(min(sizes)), repeat=len(sizes)):
        waves = [np.cos(k * np.pi * x / length) for k, x, length in zip(numbers, axes, lengths)]
        function = waves[0]
        for wave in waves[1:]:
            function = function[..., None] * wave
        found.append((sum((k * np.pi / length) ** 2 for k, length in zip(numbers, lengths)), function.ravel(order='F')))
    return sorted(found, key=lambda pair: pair[0])[:modes]


box = ((9, 10, 11), (1.0, 1.3, 1.7))
for (sizes, lengths), modes in ((((12, 14), (1.0, 1.3)), 20), (box, 10), (box, 20), (box, 100)):
    functions = grid_laplacian_eigenfunctions(modes, np.array(sizes), np.array(lengths))
    right = by_definition(sizes, lengths, modes)
    constant, rank = (np.ptp(functions, axis=0) == 0).sum(), np.linalg.matrix_rank(functions)
    true_rank = np.linalg.matrix_rank(np.stack([function for _, function in right]))
    print(f'grid {sizes}, {modes} modes: {type(functions).__name__} {functions.shape}, {constant} columns are constant, '
          f'rank {rank}. By the definition 1 is constant, rank {true_rank}')  # fmt: skip
    assert functions.shape == (np.prod(sizes), modes) and true_rank == modes, 'this has changed'
    expected = {(2, 20): (1, 20), (3, 10): (10, 1), (3, 20): (20, 1), (3, 100): (74, 27)}
    assert (constant, rank) == expected[len(sizes), modes], 'this has changed'
PY
