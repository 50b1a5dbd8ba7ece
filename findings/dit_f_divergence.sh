#!/usr/bin/env bash
# dit 2.3: f_divergence omits outcomes that only one distribution has, so that very different distributions seem close.
#
# Expected: the documented Csiszar f-divergence is the sum over all outcomes of q f(p / q). An outcome that only q has adds q
# f(0), and one that only p has adds p times the limit of f(t) / t. With f(t) = |t - 1| / 2 it is the variational distance, and
# with (sqrt(t) - 1)^2 / 2 the square of the Hellinger distance.
# Seen: the sum is over the outcomes of the first distribution, so that q f(0) never comes. If q is 0, the product is not a
# number, and nansum drops it. Two distributions with no common outcome have the divergence 0, where the variational distance is
# 1.
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
from dit.divergences import f_divergence, hellinger_distance, variational_distance

print(f'dit {version("dit")}')
functions = {'variational': lambda t: abs(t - 1) / 2, 'hellinger': lambda t: (np.sqrt(t) - 1) ** 2 / 2}
pairs = {
    'same outcomes': ({'a': 0.5, 'b': 0.5}, {'a': 0.25, 'b': 0.75}),
    'one outcome in common': ({'a': 0.5, 'b': 0.5}, {'b': 0.25, 'c': 0.75}),
    'q has one more': ({'a': 1.0}, {'a': 0.5, 'b': 0.5}),
    'p has one more': ({'a': 0.5, 'b': 0.5}, {'a': 1.0}),
    'nothing in common': ({'a': 0.5, 'b': 0.5}, {'c': 0.5, 'd': 0.5}),
}
for name, (p, q) in pairs.items():
    first, other = Distribution(list(p), list(p.values())), Distribution(list(q), list(q.values()))
    a, b = np.array([[d.get(o, 0.0) for o in sorted(set(p) | set(q))] for d in (p, q)])
    for kind, f in functions.items():
        right = abs(a - b).sum() / 2 if kind == 'variational' else 1 - np.sqrt(a * b).sum()
        own = variational_distance(first, other) if kind == 'variational' else hellinger_distance(first, other) ** 2
        with np.errstate(all='ignore'):
            seen = float(f_divergence(first, other, f))
        print(f'{name}, {kind}: {seen:.4f}, the function for it {own:.4f}, by the definition {right:.4f}')
        assert np.isclose(own, right), 'the definition is wrong'
        assert np.isclose(seen, right) == (name == 'same outcomes'), 'this has changed'
        assert name != 'nothing in common' or seen == 0, 'this has changed'
PY
