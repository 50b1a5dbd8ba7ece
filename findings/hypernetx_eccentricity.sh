#!/usr/bin/env bash
# hypernetx 2.4.3: s_eccentricity fails on a disconnected hypergraph, and spec_clus on any Laplacian that one gives it.
#
# Expected: s_eccentricity documents "If the s-linegraph is disconnected, np.inf is returned". With s > 1 hypergraphs are seldom
# connected: each hyperedge of less than s nodes is alone. spec_clus documents "existing_lap: csr matrix, optional. Whether to use an
# existing Laplacian", such as the one of norm_lap, which returns it.
# Seen: s_eccentricity raises the NetworkXError "Found infinite path length because the graph is not connected". spec_clus with
# existing_lap raises an UnboundLocalError: the names of the nodes are known only if it computes the Laplacian itself.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet hypernetx==2.4.3 networkx==3.6.1 numpy==2.4.6 scipy==1.17.1 scikit-learn==1.9.1 igraph==1.0.0
"$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import hypernetx as hnx
from hypernetx.algorithms import norm_lap, s_eccentricity, spec_clus

print(f'hypernetx {version("hypernetx")}')


def result(function, *arguments, **options):
    try:
        return 'works', function(*arguments, **options)
    except Exception as error:
        return type(error).__name__, str(error)


graph = hnx.Hypergraph({'a': [0, 1, 2], 'b': [1, 2, 3], 'c': [3, 4], 'd': [4, 5, 6], 'e': [5, 6]})
seen = [
    result(s_eccentricity, graph, s=1),
    result(s_eccentricity, graph, s=2),
    result(spec_clus, graph, 2),
    result(spec_clus, graph, 2, existing_lap=norm_lap(graph)[0]),
]
for name, (kind, value) in zip(('s_eccentricity, s=1', 's_eccentricity, s=2', 'spec_clus', 'spec_clus, existing_lap'), seen):
    print(f'{name}: {kind}: {value}')
assert [kind for kind, _ in seen] == ['works', 'NetworkXError', 'works', 'UnboundLocalError'], 'this has changed'
PY
