#!/usr/bin/env bash
# ordpy 1.2.3: global_node_entropy is in nats, and its documented results are in bits.
#
# Expected: the documented examples: 1.5 for random_ordinal_network(dx=3), 1.4988 for 100000 random numbers, and 0.25 for an
# image with horizontal connections. In a random series, each pattern of 3 values has three successors of probabilities 1/2, 1/4
# and 1/4. Their entropy is 1.5 bits.
# Seen: the logarithm is natural. The three results are 1.0397, 1.039 and 0.1733. So values are 0.69 times those that the
# documentation gives for the same data.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet ordpy==1.2.3 numpy==2.4.6
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import numpy as np
from ordpy import global_node_entropy, ordinal_network, random_ordinal_network

print(f'ordpy {version("ordpy")}')
rng = np.random.default_rng(0)
image = [[1, 2, 1, 4], [8, 3, 4, 5], [6, 7, 5, 6]]
networks = {
    'random network, dx=3': (random_ordinal_network(dx=3), 1.5),
    'random numbers, dx=3': (ordinal_network(rng.random(100000), dx=3), 1.5),
    'image, horizontal': (ordinal_network(image, dx=2, dy=2, connections='horizontal'), 0.25),
}
for name, (network, documented) in networks.items():
    nodes, links, weights = network
    right = 0
    for node in nodes:
        p = weights[links[:, 0] == node]
        p = p / p.sum() if len(p) else p
        right -= weights[links[:, 1] == node].sum() * (p * np.log2(p)).sum()
    seen = global_node_entropy(network)
    print(f'{name}: {seen:.4f}, documented {documented}, with the logarithm of base 2 {right:.4f}')
    assert abs(right - documented) < 5e-3
    assert np.isclose(seen, right * np.log(2)), 'this has changed'
PY
