#!/usr/bin/env bash
# PyDTMC 8.7.0: the expected transitions of a Markov chain in 3 steps are 4, and in 4 steps 8, and wrong for complex eigenvalues beyond.
#
# Expected: expected_transitions(steps) is "the expected number of transitions performed by the Markov chain after N steps, given the
# initial distribution of the states" (docstring), for each pair of states. There is one transition in each step, so that they sum up to
# N. With the distribution p_i after i steps, they are the sum over i < N of diag(p_i) P.
# Seen: pydtmc/measures.py has one array under two names, the distribution and its sum. Adding to the sum changes the distribution, so
# that it doubles in each step: 1, 2, 4, 8 and so on, for N up to the number of states. For more steps, eigenvectors are used, of which
# only the real part is kept. With real eigenvalues the result is right. With complex ones, as of a chain with a preferred cycle, it is
# not. time_relaxations and time_correlations at times beyond the number of states use them, too, and are wrong as well.
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
symmetric = np.array([[0.6, 0.3, 0.1, 0.0], [0.3, 0.2, 0.3, 0.2], [0.1, 0.3, 0.3, 0.3], [0.0, 0.2, 0.3, 0.5]])
cycle = np.array([[0.2, 0.8, 0.0, 0.0], [0.0, 0.2, 0.8, 0.0], [0.0, 0.0, 0.2, 0.8], [0.7, 0.1, 0.0, 0.2]])
start = [1.0, 0.0, 0.0, 0.0]


def right(p, steps):
    return sum(np.diag(start @ np.linalg.matrix_power(p, i)) @ p for i in range(steps))


for name, p in (('symmetric', symmetric), ('with a preferred cycle', cycle)):
    chain = MarkovChain(p)
    seen = {steps: chain.expected_transitions(steps, start) for steps in range(1, 8)}
    errors = {steps: float(np.abs(value - right(p, steps)).max().round(3)) for steps, value in seen.items()}
    print(f'{name}: sums {[float(value.sum().round(3)) for value in seen.values()]} in 1 to 7 steps, errors {list(errors.values())}')
    assert np.allclose([seen[steps].sum() for steps in (1, 2, 3, 4)], [1, 2, 4, 8]), 'this has changed'
    assert all((error < 1e-6) == (p is symmetric) for steps, error in errors.items() if steps > 4), 'this has changed'
    for time in (4, 5):
        relaxation = chain.time_relaxations([0, 1], start, time)
        power = (start @ np.linalg.matrix_power(p, time))[:2].sum()
        print(f'{name}: probability of the first two states after {time} steps, by time_relaxations {relaxation:.4f}, by powers {power:.4f}')
        assert np.isclose(relaxation, power) == (time == 4 or p is symmetric), 'this has changed'
PY
