#!/usr/bin/env bash
# littleballoffur 2.3.1: the depth first sampler returns edges that the graph does not have, and the hybrid edge sampler too few edges.
#
# Expected: DepthFirstSearchSampler is "node sampling by depth first search", it returns "The graph of sampled nodes", by "Extracting edges
# from the depth first search tree" (docstrings, little-ball-of-fur.readthedocs.io/en/latest/modules/root.html). Each edge of the result is
# one of the graph. HybridNodeEdgeSampler(number_of_edges) samples this number of edges of an undirected graph.
# Seen: depthfirstsearchsampler.py joins each visited node to the one that was visited next. After a dead end, the search goes back, and the
# next node is a neighbor of an earlier node: the edge does not exist. The sample is always a path. Of a star, each edge but the first joins
# two leaves. In hybridnodeedgesampler.py, one of the two ways to sample gives an edge (u, v) with u < v, and the other as the graph lists
# it. An edge that is listed as (v, u) may be counted twice.
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
from littleballoffur import BreadthFirstSearchSampler, DepthFirstSearchSampler, HybridNodeEdgeSampler, RandomEdgeSampler

print(f'littleballoffur {version("littleballoffur")}')
graphs = {'star': nx.star_graph(6), 'binary tree': nx.balanced_tree(2, 3), 'karate club': nx.Graph(nx.karate_club_graph().edges)}
for name, graph in graphs.items():
    for sampler in (BreadthFirstSearchSampler, DepthFirstSearchSampler):
        n = len(graph)
        sample = sampler(number_of_nodes=n, seed=0).sample(graph, start_node=0)
        missing = [edge for edge in sample.edges if not graph.has_edge(*edge)]
        path = sorted(degree for _, degree in sample.degree) == [1, 1] + [2] * (n - 2)
        print(f'{name}, {sampler.__name__}: {sample.number_of_edges()} edges, {len(missing)} are not in the graph. A path: {path}')
        if sampler is BreadthFirstSearchSampler:
            assert not missing and sample.number_of_edges() == n - 1, 'this has changed'
        else:
            assert path and len(missing) > n / 10 and (name != 'star' or len(missing) == n - 2), 'this has changed'

graph = nx.Graph()
graph.add_nodes_from(range(19, -1, -1))
graph.add_edges_from((i, (i + 1) % 20) for i in range(20))
for sampler in (RandomEdgeSampler, HybridNodeEdgeSampler):
    counts = [sampler(number_of_edges=15, seed=seed).sample(graph).number_of_edges() for seed in range(20)]
    print(f'cycle of 20 nodes, {sampler.__name__}(number_of_edges=15): {min(counts)} to {max(counts)} edges')
    assert (set(counts) == {15}) == (sampler is RandomEdgeSampler) and max(counts) <= 15, 'this has changed'
PY
