#!/usr/bin/env bash
# networkit 11.3: the formats GML and NetworkitBinary lose weights and parallel edges, without a word.
#
# Expected: what writeGraph writes, readGraph reads. GML has weights as values of edges: networkx 3.6.1 and igraph 1.0.0 keep them,
# and parallel edges, in files of each other. networkit itself keeps both through GraphML.
# Seen: the GML writer writes no weights, the GML reader ignores them in files of others, and merges parallel edges. Both leave a
# graph without weights, so that every distance is a number of hops. NetworkitBinary, the format for large graphs, keeps one of two
# parallel edges.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet networkit==11.3 igraph==1.0.0 networkx==3.6.1 numpy==2.4.6 scipy==1.17.1
cd "$folder"
"$folder/venv/bin/python" - <<'PY'
import logging
from collections import Counter

import igraph
import networkit as nk
import networkx as nx

logging.disable()
print(f'networkit {nk.__version__}, networkx {nx.__version__}, igraph {igraph.__version__}')
edges = [(0, 1, 0.5), (0, 1, 2.0), (1, 2, 4.0)]  # Two parallel edges.
graph = nk.Graph(3, weighted=True)
for edge in edges:
    graph.addEdge(*edge)
multi = nx.MultiGraph()
multi.add_weighted_edges_from(edges)


def read(name, format):
    if format == 'igraph':
        found = igraph.Graph.Read_GML(name)
        weights = found.es['weight'] if 'weight' in found.es.attributes() else [1.0] * found.ecount()
        return Counter((min(pair), max(pair), weight) for pair, weight in zip(found.get_edgelist(), weights))
    return Counter((min(u, v), max(u, v), weight) for u, v, weight in nk.readGraph(name, format).iterEdgesWeights())


kinds = {'GraphML': nk.Format.GraphML, 'GML': nk.Format.GML, 'NetworkitBinary': nk.Format.NetworkitBinary}
seen = {}
for name, kind in kinds.items():
    nk.writeGraph(graph, name, kind)
    seen[f'{name}, networkit to networkit'] = read(name, kind)
seen['GML, networkit to igraph'] = read('GML', 'igraph')
nx.write_gml(multi, 'networkx.gml')
seen['GML, networkx to igraph'] = read('networkx.gml', 'igraph')
seen['GML, networkx to networkit'] = read('networkx.gml', nk.Format.GML)
for name, found in seen.items():
    print(f'{name}: {sorted(found.elements())}')
bare = Counter([(0, 1, 1.0), (1, 2, 1.0)])
assert seen.pop('GraphML, networkit to networkit') == seen.pop('GML, networkx to igraph') == Counter(edges), 'this has changed'
assert seen.pop('NetworkitBinary, networkit to networkit') == Counter([edges[0], edges[2]]), 'this has changed'
assert seen.pop('GML, networkit to igraph') == bare + Counter([(0, 1, 1.0)]), 'this has changed'
assert list(seen.values()) == [bare, bare], 'this has changed'
PY
