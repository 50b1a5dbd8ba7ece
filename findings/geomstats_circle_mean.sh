#!/usr/bin/env bash
# geomstats 2.8.0: the Frechet mean of angles all around the circle is often another angle, up to the opposite of the right one.
#
# Expected: "If the mean is unique, this algorithm is guaranteed to find it. It is not vulnerable to local minima of the Frechet
# function", says CircleMean, which FrechetMean(Hypersphere(1)) is. The Frechet mean has the least sum of squared distances.
# Seen: of the candidates by Hotz and Huckemann (2015), the sum for the second one is always that for an angle below 0, as
# first_term is taken before the choice between angles below and above 0. So its variance may be too low, even below 0, and it
# is chosen. Of 1000 random sets of 2 to 7 angles, more than a tenth have a wrong mean. With first_term taken after the choice,
# none has. Angles within half a circle around 0 have the right mean.
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
from geomstats.geometry.hypersphere import Hypersphere
from geomstats.learning.frechet_mean import FrechetMean

print(f'geomstats {version("geomstats")}')
circle = Hypersphere(1)


def variance(mean, angles):  # the sum of squared distances along the circle
    return (np.angle(np.exp(1j * (np.asarray(mean)[..., None] - angles))) ** 2).sum(-1)


def by_definition(angles):  # all critical points of the Frechet function
    candidates = angles.mean() + 2 * np.pi * np.arange(len(angles)) / len(angles)
    best = candidates[variance(candidates, angles).argmin()]
    return np.angle(np.exp(1j * best))


def by_package(angles):
    mean = np.ravel(FrechetMean(circle).fit(np.stack([np.cos(angles), np.sin(angles)], 1)).estimate_)
    return np.arctan2(mean[1], mean[0])


grid = np.linspace(-np.pi, np.pi, 20001)
for angles in ([-1.0, 0.5], [-2.4, 1.0], [1.3, 2.2, -2.6], [0.7, -3.1, 2.1, 1.4, -0.9, -0.2]):
    angles = np.array(angles)
    seen, right = by_package(angles), by_definition(angles)
    print(f'{angles.tolist()}: mean {seen:.3f} with the variance {variance(seen, angles):.3f}, '
          f'right {right:.3f} with {variance(right, angles):.3f}')  # fmt: skip
    assert abs(variance(right, angles) - variance(grid, angles).min()) < 1e-3, 'the definition is wrong'
    assert np.isclose(seen, right) == (len(angles) == 2 and angles[0] == -1), 'this has changed'

rng = np.random.default_rng(0)
wrong = {'all around': 0, 'half a circle': 0}
for _ in range(1000):
    for name, width in (('all around', np.pi), ('half a circle', np.pi / 2)):
        angles = rng.uniform(-width, width, rng.integers(2, 8))
        wrong[name] += variance(by_package(angles), angles) > variance(by_definition(angles), angles) + 1e-6
print(f'wrong means of 1000 sets of angles: {wrong}')
assert wrong['all around'] > 50 and wrong['half a circle'] == 0, 'this has changed'
PY
