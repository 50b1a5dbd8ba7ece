#!/usr/bin/env bash
# PyDTMC 8.7.0: the first passage probabilities to a set of two states add up to 2.
#
# Expected: first_passage_probabilities "computes the first passage probabilities of the Markov chain after N steps, given the initial
# state and, optionally, the first passage states" (docstring). The first passage to a set of states is the first visit to any of them. It
# happens once, so that the probabilities over all steps add up to 1 in an irreducible chain. hitting_times takes a set of states in this
# sense.
# Seen: pydtmc/measures.py adds the probabilities of the first visits to each state, on paths that may have visited the others before. For
# one state it is right. For all four states of a chain, the sum is 4, and the probability of the second step is above 1/2, where the
# first step has reached the set with probability 1.
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
p = np.array([[0.4, 0.3, 0.2, 0.1], [0.1, 0.4, 0.3, 0.2], [0.2, 0.1, 0.4, 0.3], [0.3, 0.2, 0.1, 0.4]])
chain, steps = MarkovChain(p), 200


def definition(targets):
    here, result = np.eye(4)[0], []
    for _ in range(steps):
        here = here @ p
        result.append(here[targets].sum())
        here[targets] = 0
    return np.array(result)


for targets in ([2], [2, 3], [0, 1, 2, 3]):
    seen, right = chain.first_passage_probabilities(steps, 0, targets), definition(targets)
    print(f'from 0 to {targets}: {seen[:3].round(4)}, sum {seen.sum():.4f}, by the definition {right[:3].round(4)}, sum {right.sum():.4f}')
    assert np.isclose(right.sum(), 1) and np.isclose(seen.sum(), len(targets)), 'this has changed'
    if len(targets) == 2:
        mean, hitting = 1 + p[0] @ chain.hitting_times(targets), (np.arange(1, steps + 1) * right).sum()
        print(f'mean time by hitting_times {mean:.4f}, by the definition {hitting:.4f}')
        assert np.isclose(mean, hitting), 'this has changed'
PY
