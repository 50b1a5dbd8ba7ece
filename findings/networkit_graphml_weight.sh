#!/usr/bin/env bash
# networkit 11.3: the GraphML reader gives an edge without a weight the weight 0, also if the file states a default of 3.
#
# Expected: in GraphML, "<default>" of a key is the value of all elements that do not state one (3 here, as igraph 1.0.0 reads it).
# Without a default, an unweighted edge has weight 1 in networkit, as in its other readers and in addEdge.
# Seen: weight 0. The distance of both ends is 0, and the modularity and the degrees ignore the edge.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet networkit==11.3 igraph==1.0.0 numpy==2.4.6 scipy==1.17.1
cd "$folder"
"$folder/venv/bin/python" - <<'PY'
from pathlib import Path

import igraph
import networkit as nk

file = '''<?xml version="1.0" encoding="UTF-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
<key id="w" for="edge" attr.name="weight" attr.type="double">DEFAULT</key>
<graph id="G" edgedefault="undirected"><node id="n0"/><node id="n1"/><node id="n2"/>
<edge source="n0" target="n1"/>
<edge source="n1" target="n2"><data key="w">2.5</data></edge>
</graph></graphml>'''
print(f'networkit {nk.__version__}, igraph {igraph.__version__}')
seen = []
for default in ('<default>3.0</default>', ''):
    Path('graph.graphml').write_text(file.replace('DEFAULT', default))
    graph = nk.readGraph('graph.graphml', nk.Format.GraphML)
    seen.append([weight for _, _, weight in graph.iterEdgesWeights()])
    distance = nk.distance.Dijkstra(graph, 0).run().distance(2)
    peer = igraph.Graph.Read_GraphML('graph.graphml').es['weight']
    print(f'default "{default}": networkit {seen[-1]}, distance of n0 and n2 {distance}; igraph {peer}')
assert seen == [[0.0, 2.5], [0.0, 2.5]], 'this has changed'
PY
