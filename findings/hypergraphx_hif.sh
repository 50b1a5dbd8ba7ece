#!/usr/bin/env bash
# hypergraphx 1.8.0: write_hif writes no hyperedge, and read_hif cannot read the file.
#
# Expected: "Save a hypergraph to a HIF file". The Hypergraph Interchange Format, https://github.com/HIF-org/HIF-standard, is JSON with a
# list "incidences" of pairs of a node and an edge, the only part it requires, and lists "nodes" and "edges" with weights.
# Seen: the stored metadata of incidences are written, of which there are none, instead of the incidences. nodes and edges are
# dictionaries of metadata instead of lists, without weights. read_hif of the same package raises a TypeError. The original is lost.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet hypergraphx==1.8.0 numpy==1.26.4 scipy==1.13.1 networkx==3.6.1
"$folder/venv/bin/python" -W ignore - <<'PY'
import json
import tempfile
from importlib.metadata import version

from hypergraphx import Hypergraph
from hypergraphx.readwrite import read_hif, write_hif

print(f'hypergraphx {version("hypergraphx")}')
hypergraph = Hypergraph([(1, 2, 3), (3, 4)], weighted=True, weights=[2.5, 0.5])
right = [{'edge': i, 'node': node} for i, edge in enumerate(hypergraph.get_edges()) for node in edge]
with tempfile.NamedTemporaryFile(suffix='.json') as file:
    write_hif(hypergraph, file.name)
    with open(file.name) as written:
        data = json.load(written)
    try:
        message = str(read_hif(file.name).get_edges())
    except TypeError as error:
        message = f'TypeError: {error}'
print(f'written: {data}')
print(f'incidences: {len(data["incidences"])} instead of {len(right)}')
print(f'read again: {message}')
assert len(data['incidences']) == 0 and 'weight' not in str(data['edges']), 'this has changed'
assert message.startswith('TypeError'), 'this has changed'
PY
