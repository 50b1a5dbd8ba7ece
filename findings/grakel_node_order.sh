#!/usr/bin/env bash
# GraKeL 0.1.11: two graph kernels, GraphletSampling and NeighborhoodSubgraphPairwiseDistance, depend on the numbering of the nodes.
#
# Expected: isomorphic graphs have equal kernel values. GraphletSampling without sampling is documented as "drawing all possible
# connected samples of size k": a path of four nodes has two connected graphlets of three nodes, a star with three leaves has
# three, so the kernel of each with itself is 4 and 9.
# Seen: some graphlets are missed in some numberings: 1 or 4, and 4 or 9. NeighborhoodSubgraphPairwiseDistance tells a graph from
# itself with its nodes renumbered: 3.67, 4.83 or 9 for the path, where the graph with itself has 9. WeisfeilerLehman and ShortestPath
# do not depend on it.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet GraKeL==0.1.11 numpy==2.4.6 scipy==1.17.1 scikit-learn==1.9.1 networkx==3.6.1
"$folder/venv/bin/python" - <<'PY'
from importlib.metadata import version
from itertools import combinations, permutations

import grakel
import networkx as nx


def renumbered(graph, order):
    adjacency = nx.to_numpy_array(graph, nodelist=order)
    edges = {(i, j): 0 for i, row in enumerate(adjacency) for j, value in enumerate(row) if value}
    return grakel.Graph(adjacency.tolist(), dict.fromkeys(range(len(order)), 0), edges, graph_format='adjacency')


print(f'GraKeL {version("GraKeL")}')
graphs = {'path': nx.path_graph(4), 'star': nx.star_graph(3), 'cycle': nx.cycle_graph(4), 'clique': nx.complete_graph(4)}
seen = {}
for name, graph in graphs.items():
    connected = [nodes for nodes in combinations(graph, 3) if nx.is_connected(graph.subgraph(nodes))]
    kinds = [graph.subgraph(nodes).number_of_edges() for nodes in connected]
    right = sum(kinds.count(kind) ** 2 for kind in set(kinds))
    print(f'{name}: {len(connected)} connected graphlets of 3 nodes, kernel {right}')
    for kernel in (
        grakel.GraphletSampling(k=3),
        grakel.NeighborhoodSubgraphPairwiseDistance(r=2, d=2),
        grakel.WeisfeilerLehman(n_iter=2),
        grakel.ShortestPath(),
    ):
        first = renumbered(graph, list(graph))
        values = {round(float(kernel.fit_transform([first, renumbered(graph, p)])[0, 1]), 4) for p in permutations(graph)}
        own = {round(float(kernel.fit_transform([renumbered(graph, p)])[0, 0]), 4) for p in permutations(graph)}
        kind = type(kernel).__name__
        seen[kind, name] = sorted(own if kind == 'GraphletSampling' else values)
        print(f'  {kind}: {seen[kind, name]} in all 24 numberings')
assert seen['GraphletSampling', 'path'] == [1, 4] and seen['GraphletSampling', 'star'] == [4, 9], 'this has changed'
assert len(seen['NeighborhoodSubgraphPairwiseDistance', 'path']) > 1, 'this has changed'
others = [values for (kind, _), values in seen.items() if kind in ('WeisfeilerLehman', 'ShortestPath')]
assert all(len(values) == 1 for values in others), 'this has changed'
PY
