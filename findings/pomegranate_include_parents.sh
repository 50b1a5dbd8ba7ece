#!/usr/bin/env bash
# pomegranate 1.1.2: BayesianNetwork with include_parents learns a network without any edge.
#
# Expected: include_parents lists, for each variable, "the parents that must exist for that variable", and others are learned, says the
# documentation: with [(1,), (), ()], variable 0 has the parent 1. The algorithm is 'exact'.
# Seen: each variable gets the whole list instead of its own entry. No set of parents contains the tuples of the list, so that all sets are
# left out, also those that the data ask for. The parents that must exist are missing. There is no warning. exclude_parents is right.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet pomegranate==1.1.2 torch==2.13.0 numpy==2.4.6 scipy==1.17.1 scikit-learn==1.9.1 networkx==3.6.1
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import numpy as np
import torch
from pomegranate.bayesian_network import BayesianNetwork

print(f'pomegranate {version("pomegranate")}')
rng = np.random.default_rng(0)
first = rng.integers(0, 2, 2000)
second = np.where(rng.random(2000) < 0.9, first, 1 - first)
x = torch.tensor(np.stack([first, second, rng.integers(0, 2, 2000)], axis=1))


def structure(**options):
    return BayesianNetwork(algorithm='exact', **options).fit(x).structure


free = structure()
print(f'variables 0 and 1 are dependent, 2 is not. Parents without a constraint: {free}')
assert free == ((), (0,), ()), 'this has changed'
for required in ([(1,), (), ()], [(), (0,), ()], [(), (), (0,)], [(1, 2), (), ()]):
    seen = structure(include_parents=required)
    print(f'include_parents={required}: {seen}')
    assert seen == ((), (), ()), 'this has changed'
for forbidden, right in (([(), (0,), ()], ((1,), (), ())), ([(1,), (0,), ()], ((), (), ()))):
    seen = structure(exclude_parents=forbidden)
    print(f'exclude_parents={forbidden}: {seen}')
    assert seen == right, 'this has changed'
PY
