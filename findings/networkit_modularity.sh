#!/usr/bin/env bash
# networkit 11.3: the modularity of one community that holds a whole directed graph is 0.75.
#
# Expected: 0 for this partition, in every definition. The documentation of Modularity gives a formula for the sum of weights, gives the
# range [-0.5, 1.0], and does not exclude directed graphs.
# Seen: a directed edge is counted at its source only, so that the expected share of edges is too small by the factor four. The
# optimum moves to few, large communities: of two cycles joined by two arcs, the best partition becomes one community.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet networkit==11.3 networkx==3.6.1 numpy==2.4.6 scipy==1.17.1
"$folder/venv/bin/python" - <<'PY'
import networkit as nk
import networkx as nx


def modularity(graph, parts):
    partition = nk.Partition(graph.number_of_nodes())
    partition.setUpperBound(len(parts))
    for index, part in enumerate(parts):
        for node in part:
            partition.addToSubset(index, node)
    return nk.community.Modularity().getQuality(partition, nk.nxadapter.nx2nk(graph))


print(f'networkit {nk.__version__}, networkx {nx.__version__}')
cycles = nx.DiGraph([(0, 1), (1, 2), (2, 3), (3, 0), (4, 5), (5, 6), (6, 7), (7, 4), (0, 4), (4, 0)])
seen = {}
for kind, graph in (('directed', cycles), ('undirected', cycles.to_undirected())):
    for parts in ([set(range(8))], [set(range(4)), set(range(4, 8))]):
        seen[kind, len(parts)] = modularity(graph, parts)
        peer = nx.community.modularity(graph, parts)
        print(f'{kind}, {len(parts)} communities: networkit {seen[kind, len(parts)]:.3f}, networkx {peer:.3f}')
assert abs(seen['directed', 1] - 0.75) < 1e-9 and abs(seen['undirected', 1]) < 1e-9, 'this has changed'
assert seen['directed', 1] > seen['directed', 2] and seen['undirected', 1] < seen['undirected', 2], 'this has changed'
PY
