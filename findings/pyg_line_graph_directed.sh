#!/usr/bin/env bash
# torch-geometric 2.8.1: LineGraph gives the features of edges to other edges if the graph is directed and its edges are not sorted.
#
# Expected: "line-graph node indices are equal to indices in the original graph's coalesced edge_index", and "new node features are given
# by old edge attributes". So the features follow their edges into the order of coalesce.
# Seen: the connections are those of the sorted edges, while the features stay in the old order. Node 0 of the line graph is the edge
# 0 -> 1, with the feature of 1 -> 2. The same happens to undirected graphs with force_directed=True. With a duplicated edge, there are
# more rows of features than nodes. Without force_directed, undirected graphs are right. There is no warning.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet torch==2.13.0 torch-geometric==2.8.1
cd "$folder"
"$folder/venv/bin/python" -W error::UserWarning - <<'PY'
import torch
import torch_geometric
from torch_geometric.data import Data
from torch_geometric.transforms import LineGraph

print(f'torch-geometric {torch_geometric.__version__}')
edges = [(1, 2), (0, 1), (2, 0)]


def line_graph(edges):
    # The feature of the edge u -> v is 10 u + v:
    feature = torch.tensor([[10.0 * u + v] for u, v in edges])
    return LineGraph()(Data(edge_index=torch.tensor(edges).t(), edge_attr=feature, num_nodes=3))


given, ordered, twice = line_graph(edges), line_graph(sorted(edges)), line_graph([(1, 2), (0, 1), (0, 1), (2, 0)])
print(f'edges in order: features of the nodes {ordered.x.view(-1).tolist()}, connections {ordered.edge_index.t().tolist()}')
print(f'edges {edges}: features of the nodes {given.x.view(-1).tolist()}, connections {given.edge_index.t().tolist()}')
print(f'with an edge twice: {twice.num_nodes} nodes, {twice.x.size(0)} rows of features')
assert torch.equal(given.edge_index, ordered.edge_index), 'this has changed'
assert ordered.x.view(-1).tolist() == [1, 12, 20] and given.x.view(-1).tolist() == [12, 1, 20], 'this has changed'
assert (twice.num_nodes, twice.x.size(0)) == (3, 4), 'this has changed'
PY
