#!/usr/bin/env bash
# dit 2.3: LMPR_complexity of some of the variables divides by the logarithm of the outcomes of all variables.
#
# Expected: LMPR_complexity is the normalized entropy times the disequilibrium, both "calculated over" rvs, "the indexes of the
# random variable". The normalized entropy is 1 for a uniform distribution. So the complexity of rvs is that of the marginal
# distribution of these variables. Other variables do not count.
# Seen: the entropy is that of rvs, but it is divided by log2 of the number of outcomes of the whole distribution. Each further
# independent variable, which is not in rvs, makes the complexity smaller. disequilibrium(dist, rvs) alone is right.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet dit==2.3 numpy==2.4.6 scipy==1.17.1 networkx==3.6.1 pandas==3.1.1 xarray==2026.9.0 \
  boltons==26.2.0 debtcollector==3.1.0 lattices==0.5.1 loguru==0.7.3 PLTable==1.1.0
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version
from itertools import product

import numpy as np
from dit import Distribution
from dit.other import LMPR_complexity, disequilibrium

print(f'dit {version("dit")}')
p = np.array([0.6, 0.3, 0.1])


def entropy(p):
    p = p[p > 0]
    return -(p * np.log2(p)).sum()


def divergence(p, q):  # of Jensen and Shannon
    return entropy((p + q) / 2) - (entropy(p) + entropy(q)) / 2


uniform = np.full(3, 1 / 3)
ratio = divergence(p, uniform) / divergence(uniform, np.eye(3)[0])
right = ratio * entropy(p) / np.log2(3)
for further in range(4):  # with so many fair coins
    outcomes = [''.join(map(str, o)) for o in product(range(3), *[range(2)] * further)]
    distribution = Distribution(outcomes, np.repeat(p, 2**further) / 2**further)
    seen, marginal = LMPR_complexity(distribution, [0]), LMPR_complexity(distribution.marginal([0]))
    print(f'first of {1 + further} variables: {seen:.4f}, of its marginal {marginal:.4f}, by the definition {right:.4f}')
    assert np.isclose(marginal, right) and np.isclose(disequilibrium(distribution, [0]), ratio), 'the definition is wrong'
    assert np.isclose(seen, right * np.log2(3) / np.log2(3 * 2**further)), 'this has changed'
    assert np.isclose(seen, right) == (further == 0), 'this has changed'
PY
