#!/usr/bin/env bash
# networkx 3.6.1: read_pajek reads lists of neighbors as weights, and turns edges behind arcs into arcs.
#
# Expected: Pajek's format, which the documentation of read_pajek refers to, has sections *Arcs and *Edges (pairs with a weight), and
# *Arcslist and *Edgeslist (a node, and all its neighbors). A file may have several sections. igraph 1.0.0 finds all pairs.
# Seen: "*Arcslist / 1 2 3" becomes one arc 1 -> 2 of weight 3, without a warning. In a file with *Arcs and *Edges, the second heading
# is skipped: an undirected edge is read as an arc in one direction.
# The second heading is known: https://github.com/networkx/networkx/issues/5013
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet networkx==3.6.1 igraph==1.0.0
cd "$folder"
"$folder/venv/bin/python" - <<'PY'
from pathlib import Path

import igraph
import networkx as nx

print(f'networkx {nx.__version__}, igraph {igraph.__version__}')
vertices = '*Vertices 4\n1 "a"\n2 "b"\n3 "c"\n4 "d"\n'
seen = []
for section in ('*Arcslist\n1 2 3 4\n', '*Arcs\n1 2 1\n*Edges\n3 4 1\n'):
    Path('graph.net').write_text(vertices + section)
    graph, peer = nx.read_pajek('graph.net'), igraph.Graph.Read_Pajek('graph.net')
    seen.append((list(graph.edges(data='weight')), graph.has_edge('d', 'c')))
    names = peer.vs['name'] if 'name' in peer.vs.attributes() else peer.vs['id']
    print(f'{section!r}: networkx {seen[-1][0]}, igraph {[(names[u], names[v]) for u, v in peer.get_edgelist()]}')
assert seen == [([('a', 'b', 3.0)], False), ([('a', 'b', 1.0), ('c', 'd', 1.0)], False)], 'this has changed'
PY
