#!/usr/bin/env bash
# pyntcloud 0.3.1: Plane projects points below it to twice their distance, and from_equation makes a parallel plane.
#
# Expected: get_projections gives the distances of points, and their projections, which lie on the plane. A plane from the
# equation a x + b y + c z + d = 0 has this equation again by get_equation, up to the norm of (a, b, c).
# Seen: the projection is the point minus the absolute distance times the normal. For a point on the side to which the normal
# does not point, this moves it away: the result has twice the distance. So all points on that side are not projected. And
# from_equation takes the point (-d/a, -d/b, -d/c), for which the equation gives -2 d. So the plane has 3 d in place of d.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet pyntcloud==0.3.1 numpy==1.26.4 scipy==1.13.1 pandas==2.3.3
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import numpy as np
from pyntcloud.geometry import Plane

print(f'pyntcloud {version("pyntcloud")}')
rng = np.random.default_rng(0)
normal = np.array([1.0, 2.0, 2.0]) / 3
plane = Plane(point=np.array([0.0, 0.0, 1.0]), normal=normal.copy())
points = rng.normal(size=(200, 3))
signed = (points - plane.point) @ normal
distances, seen = plane.get_projections(points)
right = points - signed[:, None] * normal
error = np.abs((seen - plane.point) @ normal)  # the distance of each projection to the plane
print(f'greatest distance of projections to the plane: {error[signed > 0].max():.4f} for points above it, '
      f'{error[signed < 0].max():.4f} for points below it')  # fmt: skip
good = np.isclose(seen, right).all(1).sum()
print(f'projections that are right: {good} of {len(points)}, {np.sum(signed > 0)} points are above')
assert np.allclose((right - plane.point) @ normal, 0) and np.allclose(distances, np.abs(signed)), 'the definition is wrong'
assert np.allclose(seen[signed > 0], right[signed > 0]), 'this has changed'
assert np.allclose(error[signed < 0], 2 * np.abs(signed[signed < 0])), 'this has changed'

for equation in ((1.0, 2.0, 2.0, 6.0), (3.0, -4.0, 12.0, -13.0)):
    plane = Plane()
    plane.from_equation(*equation)
    norm = np.linalg.norm(equation[:3])
    back = np.array(plane.get_equation()) * norm
    on_plane = np.array([-equation[3] / equation[0], 0, 0])
    (distance,) = plane.get_projections(on_plane[None], only_distances=True)
    print(f'equation {equation}: back {back.round(6).tolist()}, distance of a point on it {distance:.4f}')
    assert np.isclose(equation[:3] @ on_plane, -equation[3]), 'the definition is wrong'
    assert np.allclose(back, [*equation[:3], 3 * equation[3]]), 'this has changed'
    assert np.isclose(distance, 2 * abs(equation[3]) / norm), 'this has changed'
PY
