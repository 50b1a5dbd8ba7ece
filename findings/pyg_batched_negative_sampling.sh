#!/usr/bin/env bash
# torch-geometric 2.8.1: batched_negative_sampling returns existing edges, if edges are not in the order of graphs.
#
# Expected: "samples random negative edges of multiple graphs given by edge_index and batch". A negative edge is no edge.
# The order of edges has no effect, as in negative_sampling. add_self_loops and cat([edge_index, edge_index.flip(0)], dim=1)
# return edges in another order than that of graphs.
# Seen: the edges are counted for each graph, and then cut into consecutive pieces of these sizes. If edges of a graph are not
# together, the piece of a graph has edges of others, and its own are missing. These are then drawn as negative ones. So
# a model learns that existing edges do not exist. Nothing is raised.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet torch==2.13.0 torch-geometric==2.8.1 numpy==2.4.6
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
import random

import numpy as np
import torch
import torch_geometric
from torch_geometric.utils import add_self_loops, batched_negative_sampling

print(f'torch-geometric {torch_geometric.__version__}')
cycle = np.array([[0, 1, 2, 3, 4], [1, 2, 3, 4, 0]])
edges = torch.tensor(np.concatenate([cycle + 5 * graph for graph in range(4)], axis=1))
batch = torch.arange(4).repeat_interleave(5)
torch.manual_seed(0)
cases = {
    'in the order of graphs': edges,
    'in a random order': edges[:, torch.randperm(edges.size(1))],
    'with self-loops': add_self_loops(edges)[0],
    'in both directions': torch.cat([edges, edges.flip(0)], dim=1),
}
for name, edge_index in cases.items():
    random.seed(0)
    adjacency = np.zeros((20, 20), dtype=bool)
    adjacency[tuple(edge_index.numpy())] = True
    source, target = batched_negative_sampling(edge_index, batch).numpy()
    wrong = adjacency[source, target].sum()
    print(f'edges {name}: {wrong} of {len(source)} negative edges are edges, 0 is right')
    assert (source // 5 == target // 5).all()
    assert (wrong == 0) == (name == 'in the order of graphs'), 'this has changed'
    if name != 'in the order of graphs':
        pairs = [np.flatnonzero(~adjacency[graph * 5:graph * 5 + 5, graph * 5:graph * 5 + 5].ravel()) for graph in range(4)]
        assert min(map(len, pairs)) >= 5  # there are enough pairs of nodes of each graph without an edge
PY
