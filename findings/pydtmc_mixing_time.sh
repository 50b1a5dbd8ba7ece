#!/usr/bin/env bash
# PyDTMC 8.7.0: the mixing time of a Markov chain is ten times as long with jump=10, since the chain makes single steps all the same.
#
# Expected: mixing_time(jump) "computes the mixing time of the Markov chain", with "jump: the number of steps in each iteration"
# (docstring). So the distance to the stationary distribution is looked at in each tenth step, and the result is the mixing time, rounded
# up to a multiple.
# Seen: the loop of pydtmc/measures.py multiplies the distribution by the transition matrix once in each iteration, and adds jump to the
# time. The time is multiplied by jump.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet PyDTMC==8.7.0 numpy==1.26.4 scipy==1.13.1 networkx==3.4.2 matplotlib==3.7.3
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import numpy as np
from pydtmc import MarkovChain

print(f'PyDTMC {version("PyDTMC")}')
p = np.array([[0.8, 0.2, 0.0, 0.0], [0.2, 0.6, 0.2, 0.0], [0.0, 0.2, 0.6, 0.2], [0.0, 0.0, 0.2, 0.8]])
chain, start = MarkovChain(p), [1.0, 0.0, 0.0, 0.0]
single = chain.mixing_time(start)


def distance(steps):
    return np.abs(start @ np.linalg.matrix_power(p, steps) - 0.25).sum()


print(f'mixing time {single}: distance {distance(single - 1):.4f} a step before, {distance(single):.4f} then')
for jump in (1, 2, 5, 10):
    seen, right = chain.mixing_time(start, jump=jump), -(-single // jump) * jump
    print(f'jump={jump}: {seen}, with a distance of {distance(seen):.1e}, where {right} is enough, with {distance(right):.1e}')
    assert seen == single * jump and distance(right) <= distance(single), 'this has changed'
PY
