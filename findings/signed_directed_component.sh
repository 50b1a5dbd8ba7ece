#!/usr/bin/env bash
# torch-geometric-signed-directed 1.2.0: extract_network returns another component than the largest, or nodes of none.
#
# Expected: "Find the largest connected component and iteratively only include nodes with degree at least lowest_degree".
# Seen: the component is the max() of sets, which Python orders by inclusion: the component of the first node. And the positions of the
# kept nodes within the component are used as positions in the whole graph. A triangle beside a complete graph of six nodes is returned,
# if it comes first. If the nodes of both take turns, the result is no component at all, and the labels follow.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet torch==2.13.0 torch-geometric==2.8.1 torch-geometric-signed-directed==1.2.0 \
  networkx==3.6.1 numpy==2.4.6 scipy==1.17.1
cd "$folder"
"$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import networkx as nx
import numpy as np
from scipy.sparse import csr_matrix
from torch_geometric_signed_directed.utils import extract_network

print(f'torch-geometric-signed-directed {version("torch-geometric-signed-directed")}')


def extract(triangle, complete):
    graph = nx.Graph()
    graph.add_nodes_from(range(9))
    for nodes in (triangle, complete):
        graph.add_edges_from((i, j) for i in nodes for j in nodes if i < j)
    matrix, nodes = extract_network(csr_matrix(nx.to_numpy_array(graph)), labels=np.arange(9))
    print(f'complete graph of {complete}, triangle of {triangle}: returned {nodes.tolist()}, {matrix.nnz // 2} edges')
    return nodes.tolist(), matrix.nnz // 2


assert extract([6, 7, 8], [0, 1, 2, 3, 4, 5]) == ([0, 1, 2, 3, 4, 5], 15), 'this has changed'
assert extract([0, 1, 2], [3, 4, 5, 6, 7, 8]) == ([0, 1, 2], 3), 'this has changed'
assert extract([1, 3, 5], [0, 2, 4, 6, 7, 8]) == ([0, 1, 2, 3, 4, 5], 6), 'this has changed'
PY
