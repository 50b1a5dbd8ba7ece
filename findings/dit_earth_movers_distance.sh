#!/usr/bin/env bash
# dit 2.3: the earth mover's distance of numbers is wrong, if the two distributions have other numbers: costs are transposed.
#
# Expected: "if numerical abs(x, y) is used as the distance" of two outcomes. The distance of two distributions of numbers is
# the area between their distribution functions, as scipy.stats.wasserstein_distance has it. If all numbers of one are below
# those of the other, it is the difference of the means.
# Seen: meshgrid gives the matrix of costs with a row for each number of the second distribution, while the plan has a row for
# each of the first. So moving x_i to y_j costs |x_j - y_i|. If both have the same numbers, the matrix is symmetric, and the
# result is right. The coupling of earth_movers_distance_coupling need not be optimal either.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet dit==2.3 numpy==2.4.6 scipy==1.17.1 networkx==3.6.1 pandas==3.1.1 xarray==2026.9.0 \
  boltons==26.2.0 debtcollector==3.1.0 lattices==0.5.1 loguru==0.7.3 PLTable==1.1.0
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import numpy as np
from dit import Distribution
from dit.divergences import earth_movers_distance
from dit.divergences.earth_movers_distance import earth_movers_distance_coupling
from scipy.stats import wasserstein_distance

print(f'dit {version("dit")}')


def by_definition(x, p, y, q):  # the area between the distribution functions
    points = np.unique(np.concatenate([x, y]))
    gaps = [abs(p[x <= point].sum() - q[y <= point].sum()) for point in points[:-1]]
    return (np.diff(points) * gaps).sum()


rng = np.random.default_rng(0)
p, q = np.array([0.9, 0.1]), np.array([0.5, 0.5])
low, high = np.array([0, 1]), np.array([5, 10])
cases = {'same numbers': (low, p, low, q), 'below and above': (low, p, high, q)}
for k in range(3):
    numbers = [np.sort(rng.choice(40, 4, replace=False)) for _ in range(2)]
    cases[f'random {k}'] = (numbers[0], rng.dirichlet(np.ones(4)), numbers[1], rng.dirichlet(np.ones(4)))
for name, (x, p, y, q) in cases.items():
    first, other = Distribution(x.tolist(), p.tolist()), Distribution(y.tolist(), q.tolist())
    seen, right = earth_movers_distance(first, other), by_definition(x, p, y, q)
    coupling = earth_movers_distance_coupling(first, other)
    cost = sum(probability * abs(a - b) for (a, b), probability in zip(coupling.outcomes, coupling.pmf))
    print(f'{name}: {seen:.4f}, cost of the coupling {cost:.4f}, by the definition {right:.4f}')
    assert np.isclose(right, wasserstein_distance(x, y, p, q)), 'the definition is wrong'
    assert np.isclose(seen, right) == (name == 'same numbers'), 'this has changed'
    assert name != 'below and above' or (np.isclose(seen, 5.0) and np.isclose(right, q @ y - p @ x)), 'this has changed'
PY
