#!/usr/bin/env bash
# dit 2.3: the alpha divergences of the orders 1 and -1 are exchanged: that of order 1 is the limit for order -1, in bits.
#
# Expected: alpha_divergence "comes from" en.wikipedia.org/wiki/Information_geometry. It is 4 / (1 - a^2) times (1 - sum p^((1 -
# a)/2) q^((1 + a)/2)), as the function has it for all other orders a. Its limit for a = 1 is the Kullback-Leibler divergence
# D(q||p), and that for a = -1 is D(p||q), in nats.
# Seen: order 1, which is the default, gives D(p||q), and order -1 gives D(q||p). Both are in bits, while all other orders are
# in nats. So the divergence jumps at both orders. hellinger_divergence and tsallis_divergence have the right direction at order
# 1, but bits as well: their limits are less by the factor log(2).
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
from dit.divergences import alpha_divergence, hellinger_divergence, tsallis_divergence

print(f'dit {version("dit")}')
p, q = np.array([0.7, 0.2, 0.1]), np.array([0.2, 0.3, 0.5])
first, other = Distribution(['0', '1', '2'], p), Distribution(['0', '1', '2'], q)


def by_definition(a):
    return 4 / (1 - a * a) * (1 - (p ** ((1 - a) / 2) * q ** ((1 + a) / 2)).sum())


def kullback_leibler(p, q):
    return (p * np.log(p / q)).sum()


forward, reverse = kullback_leibler(p, q), kullback_leibler(q, p)
for a, limit, wrong in ((1, reverse, forward), (-1, forward, reverse)):
    near = alpha_divergence(first, other, a * (1 - 1e-5))
    seen = alpha_divergence(first, other, a)
    print(f'order {a}: {seen:.4f}, at {a * (1 - 1e-5)}: {near:.4f}, the limit is {limit:.4f}')
    assert np.isclose(near, by_definition(a * (1 - 1e-5))) and np.isclose(near, limit, atol=1e-4), 'the definition is wrong'
    assert np.isclose(seen, wrong / np.log(2)) and not np.isclose(seen, limit / np.log(2), rtol=0.05), 'this has changed'
default = alpha_divergence(first, other)
print(f'the default order: {default:.4f}')
assert default == alpha_divergence(first, other, 1), 'this has changed'
for function in (hellinger_divergence, tsallis_divergence):
    near, seen = function(first, other, 1 - 1e-6), function(first, other, 1)
    print(f'{function.__name__}: order 1 {seen:.4f}, order 0.999999 {near:.4f}, ratio {seen / near:.4f}')
    assert np.isclose(near, forward, atol=1e-4) and np.isclose(seen / near, 1 / np.log(2), atol=1e-4), 'this has changed'
PY
