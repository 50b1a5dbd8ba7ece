#!/usr/bin/env bash
# pygod 1.1.0: the clusters of SCAN depend on the numbering of the nodes, and there are none in a graph without triangles.
#
# Expected: "Structural Clustering Algorithm for Networks", of the cited paper (Xu et al. 2007). The similarity of two neighbors compares
# their neighborhoods, to which both belong themselves: two neighbors without a third common one have 2 / 5 in a grid. A cluster is
# all that cores reach, step by step, in any numbering. A hub is a node outside that touches two clusters.
# Seen: the search for a cluster stops after two steps, since a node is marked before it is asked whether it was not, so that nodes near
# later cores are left out or not by their numbers. Neighbors without a common third one have the similarity 0, so that grids, trees
# and bipartite graphs have no cluster. And every node outside with two neighbors is a hub, also if both are in one cluster.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet torch==2.13.0 torch-geometric==2.8.1 scipy==1.17.1 numpy==2.4.6 scikit-learn==1.9.1 \
  networkx==3.6.1 setuptools==84.2.1
"$folder/venv/bin/pip" install --quiet --no-deps pygod==1.1.0
cd "$folder"
"$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import networkx as nx
import torch
from pygod.detector import SCAN
from torch_geometric.data import Data
from torch_geometric.utils import to_undirected


def scan(graph, order=None, **kwargs):  # The nodes in clusters, and the hubs, by their names before the renumbering.
    order = torch.arange(len(graph)) if order is None else order
    edge_index = order[to_undirected(torch.tensor(list(graph.edges)).t())]
    model = SCAN(**kwargs).fit(Data(x=torch.ones(len(graph), 1), edge_index=edge_index))
    return model.decision_score_[order].nonzero().flatten().tolist(), model.hub_score_[order].nonzero().flatten().tolist()


print(f'pygod {version("pygod")}')
grid = nx.convert_node_labels_to_integers(nx.grid_2d_graph(5, 5, periodic=True))
print(f'grid, similarity 0.4 of all neighbors, eps=0.3: {len(scan(grid, eps=0.3)[0])} of 25 nodes are in a cluster')
assert scan(grid, eps=0.3)[0] == [], 'this has changed'

# Two cliques of six nodes, and node 12 with two neighbors in one of them.
cliques = nx.disjoint_union(nx.complete_graph(6), nx.complete_graph(6))
cliques.add_edges_from([(12, 0), (12, 1)])
members, hubs = scan(cliques, eps=0.7)
print(f'node 12 with two neighbors in one clique: in a cluster {12 in members}, a hub {12 in hubs}')
assert 12 not in members and 12 in hubs, 'this has changed'

points = nx.random_geometric_graph(60, 0.2, seed=1)
points = nx.convert_node_labels_to_integers(nx.Graph(points.edges))
seen = set()
for seed in range(8):
    members, _ = scan(points, torch.randperm(len(points), generator=torch.Generator().manual_seed(seed)), eps=0.6)
    seen.add(tuple(members))
print(f'the same {len(points)} nodes in eight numberings: {sorted(len(members) for members in seen)} nodes are in a cluster')
assert len(seen) > 1, 'this has changed'
PY
