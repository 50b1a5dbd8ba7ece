#!/usr/bin/env bash
# ndlib 6.0.1: in HKModel, a node without neighbors takes the opinion of another node.
#
# Expected: in the model of Hegselmann and Krause, a node takes the mean of its neighbors whose opinions are closer than epsilon. A node
# without any keeps its opinion: "if there aren't neighbors in epsilon, the status of n1 doesn't change", says the code.
# Seen: a step draws as many random nodes as there are, computes the new opinion of each, and writes one only, after the loop. Where the last
# node has no neighbors, the loop skips it, and it gets the new opinion of the node drawn before. Nodes that have no edge converge to the
# others. As only one is written, 99 of 100 drawn nodes keep their opinion: https://github.com/GiulioRossetti/ndlib/issues/263
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet ndlib==6.0.1 networkx==3.6.1 numpy==2.4.6 scipy==1.17.1 igraph==1.0.0 dynetx==0.3.2 \
  netdispatch==0.1.0 bokeh==3.9.2 future==1.0.0 tqdm==4.70.1 scikit-learn==1.9.1 six==1.17.0
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import ndlib.models.opinions as opinions
import networkx as nx
import numpy as np
from ndlib.models.ModelConfig import Configuration

print(f'ndlib {version("ndlib")}')
np.random.seed(0)
graph = nx.complete_graph(20)
graph.add_nodes_from(range(20, 30))  # Ten nodes without neighbors.
config = Configuration()
config.add_model_parameter('epsilon', 0.5)
model = opinions.HKModel(graph)
model.set_initial_status(config)
for v in graph:
    model.status[v] = 0.3 + v / 100 if v < 20 else -0.9
changed = []
for _ in range(400):
    before = dict(model.status)
    model.iteration()
    changed.append(sum(model.status[v] != before[v] for v in graph))
opinion = np.array([model.status[v] for v in graph])
print(f'most nodes that a step has changed: {max(changed)} of {len(graph)}')
print(f'nodes without neighbors: -0.9 before, {opinion[20:].round(2)} after 400 steps')
print(f'the others: {opinion[:20].mean():.2f} on average')
assert max(changed) == 1 and (opinion[20:] > 0.2).all(), 'this has changed'
PY
