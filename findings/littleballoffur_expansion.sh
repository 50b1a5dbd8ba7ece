#!/usr/bin/env bash
# littleballoffur 2.3.1: CommunityStructureExpansionSampler takes any neighbor of the sample, not the one with the largest expansion.
#
# Expected: "Starting with a random source node the procedure chooses a node which is connected to the already sampled nodes. This node is
# the one with the largest community expansion score" (docstring, little-ball-of-fur.readthedocs.io/en/latest/modules/root.html). The
# score in the code is the number of neighbors of a node that are not sampled yet.
# Seen: _choose_new_node in communitystructureexpansionsampler.py compares each score with largest_expansion, which stays 0: no score is
# below it. The last node of the shuffled neighbors is taken, whatever its score. In a graph of a hub with 50 neighbors next to a leaf, the
# leaf is taken as often as the hub. Of a graph of Barabasi and Albert, the sample reaches clearly fewer nodes than by the largest score.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet numpy==2.4.6 scipy==1.17.1 networkx==3.6.1 networkit==11.2.1 pandas==3.1.1 tqdm==4.68.1 six==1.17.0
"$folder/venv/bin/pip" install --quiet --no-deps littleballoffur==2.3.1
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
import random
from importlib.metadata import version

import networkx as nx
import numpy as np
from littleballoffur import CommunityStructureExpansionSampler

print(f'littleballoffur {version("littleballoffur")}')


def by_definition(graph, count, seed):
    """The next node is the one with most neighbors outside of the sample, a random one of several."""
    rng, nodes = random.Random(seed), {0}
    while len(nodes) < count:
        targets = [v for v in nx.node_boundary(graph, nodes)]
        rng.shuffle(targets)
        nodes.add(max(targets, key=lambda v: len(set(graph[v]) - nodes)))
    return nodes


def sampled(graph, count, seed):
    return set(CommunityStructureExpansionSampler(number_of_nodes=count, seed=seed).sample(graph, start_node=0))


hub = nx.Graph([(0, 1), (0, 2)] + [(1, i) for i in range(3, 53)])
counts = {name: float(np.mean([1 in function(hub, 2, seed) for seed in range(200)])) for name, function in
          (('by definition', by_definition), ('sampler', sampled))}  # fmt: skip
print(f'neighbors of the start are a hub of degree 51 and a leaf. Share of runs that take the hub: {counts}')
assert counts['by definition'] == 1 and 0.35 < counts['sampler'] < 0.65, 'this has changed'

graph = nx.barabasi_albert_graph(500, 2, seed=0)
reached = {}
for name, function in (('by definition', by_definition), ('sampler', sampled)):
    samples = [function(graph, 20, seed) for seed in range(10)]
    reached[name] = float(np.mean([len(nodes | nx.node_boundary(graph, nodes)) for nodes in samples]))
print(f'20 of 500 nodes, number of nodes in the sample or next to it, mean of 10 runs: {reached}')
assert reached['sampler'] < 0.8 * reached['by definition'], 'this has changed'
PY
