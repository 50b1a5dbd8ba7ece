#!/usr/bin/env bash
# rustworkx 0.18.1: write_graphml gives one id to two keys, so that networkx reads attributes of nodes under another name.
#
# Expected: in GraphML, the id of a key is unique in its document. The attribute "label" of nodes that rustworkx writes is "label"
# in every reader.
# Seen: rustworkx numbers the keys of nodes and those of edges from d1 on. networkx 3.6.1 takes the last key of an id for both, so
# that the labels of nodes become their "weight", without a word. networkit 11.3 has its own trouble: its writer misspells the
# attribute xmlns as xmlnsi, so that its files are in no namespace, and networkx finds no graph in them.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet rustworkx==0.18.1 networkx==3.6.1 networkit==11.3 numpy==2.4.6 scipy==1.17.1
cd "$folder"
"$folder/venv/bin/python" - <<'PY'
import re
import warnings
from pathlib import Path

import networkit
import networkx
import rustworkx

warnings.simplefilter('ignore')
print(f'rustworkx {rustworkx.__version__}, networkx {networkx.__version__}, networkit {networkit.__version__}')
graph = rustworkx.PyGraph()
graph.add_nodes_from([{'label': 7}, {'label': 8}])
graph.add_edge(0, 1, {'weight': 0.5})
rustworkx.graph_write_graphml(graph, 'rustworkx.graphml')
text = Path('rustworkx.graphml').read_text()
print(*re.findall('<key [^>]*>', text), sep='\n')
own = rustworkx.read_graphml('rustworkx.graphml')[0].nodes()
read = [data for _, data in networkx.read_graphml('rustworkx.graphml').nodes(data=True)]
print(f'nodes in rustworkx: {own}\nnodes in networkx: {read}')

pair = networkit.Graph(2)
pair.addEdge(0, 1)
networkit.writeGraph(pair, 'networkit.graphml', networkit.Format.GraphML)
print(re.search('<graphml [a-z]*=', Path('networkit.graphml').read_text())[0])
try:
    refused = str(networkx.read_graphml('networkit.graphml'))
except networkx.NetworkXError as error:
    refused = str(error)
print(f'networkit to networkx: {refused}')
assert [node['label'] for node in own] == [7, 8] and read == [{'weight': 7.0}, {'weight': 8.0}], 'this has changed'
assert refused == 'file not successfully read as graphml', 'this has changed'
PY
