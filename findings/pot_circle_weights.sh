#!/usr/bin/env bash
# POT 0.9.7.post1: semidiscrete_wasserstein2_unif_circle sorts the samples, but not their weights.
#
# Expected: each sample keeps its weight. The order of the samples does not matter. The value is that of wasserstein_circle with p=2 to many
# points at equal distances, which stand for the uniform distribution.
# Seen: the i-th smallest sample gets the weight of the i-th sample. Samples which are sorted already are right, and equal weights are.
# sliced_wasserstein_sphere_unif projects samples to circles, where they have another order each time, so that sorting them first does not
# help. For samples all over the sphere, weights on the north only give 0.015, where 0.197 is right. Equal weights give 0.0075.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet POT==0.9.7.post1 numpy==2.4.6 scipy==1.17.1
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import numpy as np
import ot

print(f'POT {version("POT")}')
rng = np.random.default_rng(0)
x, weights = rng.random(6), rng.dirichlet(np.full(6, 0.5))
order = np.argsort(x)
grid = (np.arange(20_000) + 0.5) / 20_000


def by_points(x, weights):
    return ot.wasserstein_circle(x[:, None], grid[:, None], weights[:, None], np.full((len(grid), 1), 1 / len(grid)), p=2).item()


def seen(x, weights):
    return ot.semidiscrete_wasserstein2_unif_circle(x, weights).item()


right, other = by_points(x, weights), by_points(x[order], weights)
print(f'samples {x.round(2)}, weights {weights.round(2)}: {seen(x, weights):.4f}, sorted {seen(x[order], weights[order]):.4f}, '
      f'to 20000 points {right:.4f}, with the weights in the order of the sorted samples {other:.4f}')  # fmt: skip
assert np.isclose(seen(x[order], weights[order]), right, atol=1e-4), 'this has changed'
assert np.isclose(seen(x, weights), other, atol=1e-4) and abs(other / right - 1) > 0.1, 'this has changed'

sphere = rng.normal(size=(2000, 3))
sphere /= np.linalg.norm(sphere, axis=1, keepdims=True)
north = (sphere[:, 2] > 0.7) / (sphere[:, 2] > 0.7).sum()
projections = np.stack([np.linalg.qr(rng.normal(size=(3, 2)))[0] for _ in range(50)])


def by_circles(samples, weights):
    values = []
    for plane in projections:
        angle = ot.utils.get_coordinate_circle(samples @ plane)
        order = np.argsort(angle)
        values.append(seen(angle[order], weights[order]))
    return np.mean(values) ** 0.5


kept = sphere[north > 0]
equal = np.full(len(sphere), 1 / len(sphere))
for name, samples, w in (('equal weights', sphere, equal), ('weights of the north only', sphere, north),
                         ('the samples of the north only', kept, np.full(len(kept), 1 / len(kept)))):  # fmt: skip
    value = ot.sliced_wasserstein_sphere_unif(samples, w, projections=projections)
    print(f'sphere, {name}: {value:.4f}, sorted first {by_circles(samples, w):.4f}')
    assert np.isclose(value, by_circles(samples, w)) != (w is north), 'this has changed'
    if w is north:
        assert by_circles(samples, w) > 10 * value, 'this has changed'
PY
