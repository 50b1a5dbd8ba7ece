#!/usr/bin/env bash
# geomstats 2.8.0: the injectivity radius of the rotations in three dimensions is 5.44, and not pi, which is right.
#
# Expected: injectivity_radius is "the supremum of radii r for which the exponential map is a diffeomorphism from the open ball
# of radius r centered at the base point onto its image". In SpecialOrthogonal(3), whose distance is the angle of the rotation,
# turns by 3.5 and by 3.5 - 2 pi, both in the ball, are the same. So the radius is pi, for all n > 1.
# Seen: BiInvariantMetric.injectivity_radius gives pi times the square root of the dimension of the manifold: 5.44 for n = 3,
# and 7.70 for n = 4. It is right for n = 2 alone. Two tangent vectors in the ball have the same image, and the distance of the
# image of a vector of length 4 is 2.28. Both point types of n = 3 share this.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet geomstats==2.8.0 numpy==1.26.4 scipy==1.13.1 scikit-learn==1.9.1 pandas==2.3.3 \
  matplotlib==3.10.3 joblib==1.5.3
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import numpy as np
from geomstats.geometry.special_orthogonal import SpecialOrthogonal

print(f'geomstats {version("geomstats")}')
for n in (2, 3, 4):
    space = SpecialOrthogonal(n)
    metric, identity = space.metric, np.eye(n)
    plane = np.zeros((n, n))
    plane[0, 1], plane[1, 0] = -1, 1  # turns one plane
    radius = float(metric.injectivity_radius(identity))
    print(f'n = {n}: radius {radius:.4f}, pi is {np.pi:.4f}, norm of a turn by 1: {float(metric.norm(plane, identity)):.4f}')
    assert np.isclose(float(metric.norm(plane, identity)), 1), 'the definition is wrong'
    assert np.isclose(radius, np.pi * np.sqrt(n * (n - 1) / 2)) and np.isclose(radius, np.pi) == (n == 2), 'this has changed'
    for length in (3.0, 3.5, 4.0):
        right = np.eye(n)
        right[:2, :2] = [[np.cos(length), -np.sin(length)], [np.sin(length), np.cos(length)]]
        image, other = metric.exp(length * plane, identity), metric.exp((length - 2 * np.pi) * plane, identity)
        distance = float(metric.dist(identity, image))
        inside = length < radius and 2 * np.pi - length < radius
        same = np.allclose(image, other)
        print(f'    lengths {length} and {2 * np.pi - length:.4f}: same image {same}, both in the ball {inside}, '
              f'distance of the image {distance:.4f}')  # fmt: skip
        assert np.allclose(image, right) and np.allclose(other, right), 'the definition is wrong'
        assert np.isclose(distance, min(length, 2 * np.pi - length)), 'the definition is wrong'
        assert inside == (n > 2), 'this has changed'
vector = SpecialOrthogonal(3, point_type='vector').metric.injectivity_radius(np.zeros(3))
print(f'rotation vectors: radius {float(vector):.4f}')
assert np.isclose(float(vector), np.pi * np.sqrt(3)), 'this has changed'
PY
