#!/usr/bin/env bash
# DHG 0.9.7: with weights given to v2v, v2e or e2v, aggr="mean" multiplies by the degree instead of dividing by it.
#
# Expected: aggr is the "aggregation function for neighbor messages, which can be 'mean', 'sum', or 'softmax_then_sum'", and e_weight
# "the edge weight vector". A mean of equal features is this feature. Without e_weight, the weights of the graph are used, and it is.
# Seen: with e_weight, the inverse of the degree is named so, but never inverted. A mean of ones is the square of the degree. So passing the
# graph its own weights changes the result. Graph, DiGraph, BiGraph and Hypergraph have the same lines.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet dhg==0.9.7 torch==2.13.0 numpy==2.4.6 scipy==1.17.1
cd "$folder"
"$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import torch
from dhg import Graph, Hypergraph

print(f'DHG {version("dhg")}')
graph = Graph(5, [(0, 1), (0, 2), (0, 3), (3, 4)], [1.0, 2.0, 3.0, 4.0])
x = torch.ones(5, 1)
weights = graph.A.coalesce().values()
seen, own = graph.v2v(x, aggr='mean', e_weight=weights).view(-1), graph.v2v(x, aggr='mean').view(-1)
degree = torch.sparse.sum(graph.A, 1).to_dense()
print(f'Graph, mean of ones: {own.tolist()}, with its own weights given {seen.tolist()}')
assert torch.allclose(own, torch.ones(5)) and torch.allclose(seen, degree**2), 'this has changed'

hypergraph = Hypergraph(5, [(0, 1, 2), (2, 3, 4, 0)])
ones = torch.ones(hypergraph.H.coalesce().values().numel())
own = hypergraph.v2e(x, aggr='mean').view(-1)
seen = hypergraph.v2e(x, aggr='mean', v2e_weight=ones).view(-1)
print(f'Hypergraph, mean of ones: {own.tolist()}, with weights of 1 given {seen.tolist()}')
assert torch.allclose(own, torch.ones(2)) and torch.allclose(seen, torch.tensor([9.0, 16.0])), 'this has changed'
PY
