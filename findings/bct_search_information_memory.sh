#!/usr/bin/env bash
# bctpy 0.6.1: search information with memory is minus infinity from nodes of degree 1, and wrong elsewhere.
#
# Expected: has_memory of search_information is "whether or not the random walker remembers its previous step, which has the
# effect of reducing the amount of information needed to find the next state". In Rosvall et al. (2005), the walker does not go
# back. So each step is divided by 1 minus the probability of going back to the node before. Probabilities stay at most 1, and
# the information in bits is at least 0, and at most that without memory.
# Seen: it divides by 1 minus the probability of the step that led here. At the first node of degree 1, this is 1 - 1 = 0. So
# from such a node, the information is minus infinity. Elsewhere, it is too small if the step that led here is more likely than
# its way back, and too large if it is less likely.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet bctpy==0.6.1 numpy==1.26.4 scipy==1.13.1
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import bct
import numpy as np

print(f'bctpy {version("bctpy")}')


def by_definition(weights, path, memory):
    chance = weights / weights.sum(1, keepdims=True)
    probability = chance[path[0], path[1]]
    for before, here, after in zip(path, path[1:], path[2:]):
        probability *= chance[here, after] / (1 - chance[here, before] if memory else 1)
    return -np.log2(probability)


def network(size, edges):
    result = np.zeros((size, size))
    for i, j in edges:
        result[i, j] = result[j, i] = 1
    return result


star = network(6, [(0, 1), (1, 2), (2, 3), (1, 4), (1, 5)])
hubs = network(8, [(0, 1), (0, 2), (1, 3), (1, 4), (1, 5), (1, 6), (6, 7), (2, 7)])
for name, weights, path in (('leaf, hub, node, leaf', star, [0, 1, 2, 3]), ('the way back', star, [3, 2, 1, 0]),
                            ('over a hub', hubs, [2, 0, 1, 3])):  # fmt: skip
    with np.errstate(divide='ignore', invalid='ignore'):
        seen = {memory: bct.search_information(weights, has_memory=memory)[path[0], path[-1]] for memory in (False, True)}
    right = {memory: by_definition(weights, path, memory) for memory in (False, True)}
    print(f'{name}: {seen[True]:.3f} bits with memory, {seen[False]:.3f} without. By the definition {right[True]:.3f} and '
          f'{right[False]:.3f}')  # fmt: skip
    assert np.isclose(seen[False], right[False]) and 0 <= right[True] < right[False]
    assert not np.isclose(seen[True], right[True]), 'this has changed'
    if path[0] == 0:
        assert seen[True] == -np.inf, 'this has changed'
PY
