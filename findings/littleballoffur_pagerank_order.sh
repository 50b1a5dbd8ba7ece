#!/usr/bin/env bash
# littleballoffur 2.3.1: PageRankBasedSampler gives the PageRank of one node to another, if nodes were not added in the order 0, 1, 2, ...
#
# Expected: "Nodes are sampled proportional to the PageRank score of nodes" (docstring,
# little-ball-of-fur.readthedocs.io/en/latest/modules/root.html). The graph must have the nodes 0 to n - 1, in any order: check_graph sorts
# them before it compares.
# Seen: NetworkXBackEnd.get_pagerank in backend.py gives the scores in the order of graph.nodes, which is that of insertion, as for a graph
# that was read from a list of edges. PageRankBasedSampler._create_initial_node_set takes them as those of 0, 1, 2, ... The center of a star
# is sampled as rarely as a leaf, and a leaf as often as the center. DegreeBasedSampler is right for the same graph, and so is
# PageRankBasedSampler for the same graph with sorted nodes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet numpy==2.4.6 scipy==1.17.1 networkx==3.6.1 networkit==11.2.1 pandas==3.1.1 tqdm==4.68.1 six==1.17.0
"$folder/venv/bin/pip" install --quiet --no-deps littleballoffur==2.3.1
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import networkx as nx
import numpy as np
from littleballoffur import DegreeBasedSampler, PageRankBasedSampler

print(f'littleballoffur {version("littleballoffur")}')
n, runs, center = 10, 300, 9
read = nx.Graph((center, leaf) for leaf in range(n - 1))
ordered = nx.Graph()
ordered.add_nodes_from(range(n))
ordered.add_edges_from(read.edges)

matrix = nx.to_numpy_array(read, nodelist=range(n))
transition = matrix / matrix.sum(0)
pagerank = np.linalg.solve(np.eye(n) - 0.85 * transition, np.full(n, 0.15 / n))
print(f'PageRank of a star by the definition: center {center} {pagerank[center]:.3f}, leaf 0 {pagerank[0]:.3f}')

for sampler in (PageRankBasedSampler, DegreeBasedSampler):
    for name, graph in (('nodes in order', ordered), ('as read', read)):
        counts = np.zeros(n)
        for seed in range(runs):
            counts[list(sampler(number_of_nodes=1, seed=seed).sample(graph))] += 1
        share = counts / runs
        print(f'{sampler.__name__}, {name} {list(graph)}: the center in {share[center]:.3f} of the samples of one node, leaf 0 in {share[0]:.3f}')
        right = pagerank[center] if sampler is PageRankBasedSampler else 0.5
        if sampler is PageRankBasedSampler and graph is read:
            assert abs(share[0] - right) < 0.09 and share[center] < 0.12, 'this has changed'
        else:
            assert abs(share[center] - right) < 0.09 and share[0] < 0.12, 'this has changed'
PY
