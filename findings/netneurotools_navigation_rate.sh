#!/usr/bin/env bash
# netneurotools 0.3.0: the success rate of navigation counts each node with itself as a success.
#
# Expected: navigation_wu returns the "overall navigation success rate" and "nodal navigation success rate" of Seguin et al.
# (2018). That is "the proportion of node pairs in the network that can be successfully reached via navigation". So it is 0 if
# no node reaches another one, and the Brain Connectivity Toolbox divides by n (n - 1).
# Seen: pairs of a node with itself count as successes, and the sum is divided by n^2. In a network of two nodes, of which none
# reaches the other, the rate is 0.5. In one of 5 nodes where half of the pairs succeed, it is 0.6. Rates of networks of
# different sizes so can not be compared.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet netneurotools==0.3.0 numpy==2.4.6 scipy==1.17.1 bctpy==0.6.1
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import numpy as np
from netneurotools.metrics import navigation_wu

print(f'netneurotools {version("netneurotools")}')


def succeeds(distance, weights, source, target):
    seen = [source]
    while seen[-1] != target:
        near = np.flatnonzero(weights[seen[-1]])
        if not near.size:
            return False
        step = near[distance[near, target].argmin()]
        if step in seen:
            return False
        seen.append(step)
    return True


for n in (2, 5, 20):
    rng = np.random.default_rng(n)
    points = rng.uniform(0, 1, (n, 2))
    distance = np.linalg.norm(points[:, None] - points, axis=2)
    weights = np.triu(rng.uniform(size=(n, n)) < 3 / n, 1).astype(float) if n > 2 else np.zeros((2, 2))
    weights += weights.T
    reached = np.array([[succeeds(distance, weights, i, j) for j in range(n)] for i in range(n)])
    right, nodal = (reached.sum() - n) / n / (n - 1), (reached.sum(1) - 1) / (n - 1)
    seen, seen_nodal = navigation_wu(distance, weights)[:2]
    print(f'{n} nodes: success rate {seen:.3f}, of pairs of different nodes {right:.3f}. Nodal rates differ by up to '
          f'{np.abs(np.array(seen_nodal) - nodal).max():.2f}')  # fmt: skip
    assert np.isclose(seen, (right * (n - 1) + 1) / n) and seen > right, 'this has changed'
    assert np.allclose(seen_nodal, (nodal * (n - 1) + 1) / n), 'this has changed'
PY
