#!/usr/bin/env bash
# dit 2.3: divergences and Renyi and Tsallis entropies of log distributions are those of the logarithms, without an error.
#
# Expected: a distribution holds probabilities or their logarithms, which set_base and copy(base=2) change. It stays the same
# distribution: entropy, extropy and perplexity know both kinds. So do the measures that are computed from it. No docstring
# excludes log distributions.
# Seen: kullback_leibler_divergence, cross_entropy, variational_distance, hellinger_distance, renyi_entropy and tsallis_entropy
# take dist.pmf for probabilities, which holds logarithms. The Kullback-Leibler divergence is negative, the Renyi entropy of
# order 2 is negative or the variational distance exceeds 1.
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
from dit.divergences import cross_entropy, hellinger_distance, kullback_leibler_divergence, variational_distance
from dit.multivariate import entropy
from dit.other import extropy, perplexity, renyi_entropy, tsallis_entropy

print(f'dit {version("dit")}')
p, q = np.array([0.7, 0.2, 0.1]), np.array([0.2, 0.3, 0.5])
first, other = Distribution(['0', '1', '2'], p), Distribution(['0', '1', '2'], q)
logs = first.copy(base=2), other.copy(base=2)
assert logs[0].is_log() and np.allclose(2 ** logs[0].pmf, p), 'this has changed'
shannon = -(p * np.log2(p)).sum()
cases = {
    'entropy': (entropy, 1, shannon, True),
    'extropy': (extropy, 1, -((1 - p) * np.log2(1 - p)).sum(), True),
    'perplexity': (perplexity, 1, 2**shannon, True),
    'renyi_entropy of order 2': (lambda d: renyi_entropy(d, 2), 1, -np.log2((p**2).sum()), False),
    'tsallis_entropy of order 2': (lambda d: tsallis_entropy(d, 2), 1, 1 - (p**2).sum(), False),
    'cross_entropy': (cross_entropy, 2, -(p * np.log2(q)).sum(), False),
    'kullback_leibler_divergence': (kullback_leibler_divergence, 2, (p * np.log2(p / q)).sum(), False),
    'variational_distance': (variational_distance, 2, abs(p - q).sum() / 2, False),
    'hellinger_distance': (hellinger_distance, 2, np.sqrt(1 - np.sqrt(p * q).sum()), False),
}
seen = {}
for name, (function, number, right, same) in cases.items():
    linear = float(function(*(first, other)[:number]))
    with np.errstate(all='ignore'):
        seen[name] = float(function(*logs[:number]))
    print(f'{name}: linear {linear:.4f}, log {seen[name]:.4f}, by the definition {right:.4f}')
    assert np.isclose(linear, right), 'the definition is wrong'
    assert np.isclose(seen[name], right) == same, 'this has changed'
assert seen['kullback_leibler_divergence'] < -1 and seen['renyi_entropy of order 2'] < -1, 'this has changed'
assert seen['variational_distance'] > 2, 'this has changed'
PY
