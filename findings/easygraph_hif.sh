#!/usr/bin/env bash
# EasyGraph 1.6.3 and xgi 0.10.2: hif_to_hypergraph drops all nodes without attributes from the files of xgi, and most hyperedges.
#
# Expected: "Reads HIF JSON and returns an EasyGraph Hypergraph". The schema of the Hypergraph Interchange Format requires "incidences"
# only: "nodes" and "edges" are lists for weights and attributes. xgi writes only nodes with attributes and isolated nodes there.
# Seen: only nodes of the list "nodes" are read, and only hyperedges of the list "edges". All other incidences are skipped without a
# word: hyperedges get smaller, empty, or equal to others, and vanish. Without both lists, nothing is left, and an error asks for a
# positive number of nodes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet Python-EasyGraph==1.6.3 xgi==0.10.2 networkx==3.6.1 numpy==1.26.4 scipy==1.17.1 \
  pandas==2.3.3 torch==2.13.0
cd "$folder"
"$folder/venv/bin/python" -W ignore - <<'PY'
import json
import os
import tempfile
from importlib.metadata import version

import easygraph as eg
import xgi

print(f'EasyGraph {version("Python-EasyGraph")}, xgi {version("xgi")}')
hypergraph = xgi.Hypergraph([[1, 2, 3], [3, 4], [1, 2, 4]])
hypergraph.set_node_attributes({1: {'kind': 'x'}, 2: {'kind': 'y'}})
hypergraph.set_edge_attributes({edge: {'color': 'red'} for edge in hypergraph.edges})
with tempfile.TemporaryDirectory() as folder:
    name = os.path.join(folder, 'hypergraph.json')
    xgi.write_hif(hypergraph, name)
    with open(name) as file:
        data = json.load(file)
    again = xgi.read_hif(name).edges.members()
print(f'file of xgi: {len(data["incidences"])} incidences, nodes {data["nodes"]}')
seen = eg.hif_to_hypergraph(hif=data)
print(f'read by xgi: {again}')
print(f'read by EasyGraph: {seen.num_v} nodes instead of {hypergraph.num_nodes}, hyperedges {seen.e[0]}')
assert again == hypergraph.edges.members() and len(data['incidences']) == 8, 'the file is wrong'
assert seen.num_v == 2 and 3 not in {len(edge) for edge in seen.e[0]}, 'this has changed'

minimal = {'incidences': data['incidences'], 'nodes': [{'node': node} for node in (1, 2, 3, 4)]}
seen = eg.hif_to_hypergraph(hif=minimal)
print(f'without the list of edges: {seen.num_v} nodes, {len(seen.e[0])} hyperedges instead of 3')
assert len(seen.e[0]) == 0, 'this has changed'
PY
