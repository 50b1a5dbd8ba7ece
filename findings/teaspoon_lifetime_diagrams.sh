#!/usr/bin/env bash
# teaspoon 1.6.0: wassersteinDist with lifetimes changes both diagrams in place, so that each call gives another distance.
#
# Expected: wassersteinDist(pts0, pts1, y_axis='lifetime') takes diagrams of births and lifetimes, and is the distance of the
# same diagrams with births and deaths (docstring). It is a function of both, and calls do not matter to each other.
# Seen: the lifetimes are replaced by the deaths in the arrays of the caller. The next call takes the deaths for lifetimes, and
# adds the births once more. In a matrix of distances of a list of diagrams, all but the first distances are wrong, and the
# matrix is not symmetric.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet POT==0.9.7.post1 persim==0.4.1 scikit-learn==1.8.0 numpy==2.4.6 scipy==1.17.1
"$folder/venv/bin/pip" install --quiet --no-deps teaspoon==1.6.0
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import numpy as np
from scipy.optimize import linear_sum_assignment
from teaspoon.TDA.Distance import wassersteinDist

print(f'teaspoon {version("teaspoon")}')
rng = np.random.default_rng(0)
diagrams = [np.stack([rng.random(5), rng.random(5) + 0.1], axis=1) for _ in range(4)]  # Births and lifetimes.


def by_definition(first, second):
    """Each point is matched with one of the other diagram, or with the nearest point of the diagonal."""
    first, second = (np.stack([diagram[:, 0], diagram.sum(1)], axis=1) for diagram in (first, second))
    n, m = len(first), len(second)
    cost = np.zeros((n + m, n + m))
    cost[:n, :m] = ((first[:, None] - second) ** 2).sum(-1)
    cost[:n, m:] = np.diff(first) ** 2 / 2
    cost[n:, :m] = (np.diff(second) ** 2 / 2).T
    return np.sqrt(cost[linear_sum_assignment(cost)].sum())


right = np.array([[by_definition(a, b) for b in diagrams] for a in diagrams])
copies = np.array([[wassersteinDist(a.copy(), b.copy(), y_axis='lifetime') for b in diagrams] for a in diagrams])
first, second = (diagram.copy() for diagram in diagrams[:2])
calls = [wassersteinDist(first, second, y_axis='lifetime') for _ in range(4)]
print(f'the same call four times: {np.round(calls, 3)}, by the definition {right[0, 1]:.3f}')
assert np.allclose(copies, right, atol=1e-6) and np.isclose(calls[0], right[0, 1]), 'this has changed'
assert (np.diff(calls) != 0).all() and not np.array_equal(first, diagrams[0]), 'this has changed'

used = [diagram.copy() for diagram in diagrams]
seen = np.array([[wassersteinDist(a, b, y_axis='lifetime') for b in used] for a in used])
print(f'distances of four diagrams:\n{seen.round(3)}\nby the definition:\n{right.round(3)}')
assert abs(seen - seen.T).max() > 0.1 and abs(seen - right).max() > 0.1, 'this has changed'
PY
