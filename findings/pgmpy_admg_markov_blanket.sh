#!/usr/bin/env bash
# pgmpy 1.1.2: get_markov_blanket of ADMG is the set of neighbors. Given it, the node still depends on others, by is_mseparated.
#
# Expected: the blanket "includes parents, children, spouses (nodes sharing a child), parents of nodes in the district", says the
# documentation. Given it, the node is independent of all others. Without bidirected edges, it is that of DAG.
# Seen: other parents of children, other nodes of the district, their parents, and the districts of children are missing. So X -> Y <- Z
# gives {Y} for X, where DAG gives {Y, Z}, and X depends on Z given Y. Besides, get_ancestors and get_descendants of a node are said to
# include it, and are empty if it has bidirected edges only, and get_ancestral_graph, the "subgraph induced by ancestors of the given nodes",
# has the given nodes alone.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet pgmpy==1.1.2 networkx==3.6.1 numpy==2.4.6 scipy==1.17.1 pandas==3.1.1 \
  scikit-learn==1.9.1 statsmodels==0.15.0 scikit-base==1.2.0 opt_einsum==3.4.0 pyparsing==3.3.3 joblib==1.6.0 tqdm==4.70.1 \
  huggingface_hub==2.4.0
cd "$folder"
PYTHONHASHSEED=0 OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import networkx as nx
from pgmpy.base import ADMG, DAG

print(f'pgmpy {version("pgmpy")}')


def blanket(arrows, both, node):
    """The districts of the node and of its children, with their parents (Richardson 2003)."""
    parts, graph = nx.Graph(both), nx.DiGraph(arrows)
    district = lambda v: nx.node_connected_component(parts, v) if v in parts else {v}
    found = district(node).union(*map(district, graph.successors(node) if node in graph else ()))
    return found.union(*(graph.predecessors(v) for v in found if v in graph)) - {node}


cases = {
    'X -> Y <- Z': ([('X', 'Y'), ('Z', 'Y')], [], 'X'),
    'A <-> B <-> C, P -> B': ([('P', 'B')], [('A', 'B'), ('B', 'C')], 'A'),
    'X -> Y <-> Z': ([('X', 'Y')], [('Y', 'Z')], 'X'),
}
for name, (arrows, both, node) in cases.items():
    graph = ADMG(directed_ebunch=arrows, bidirected_ebunch=both)
    seen, right = graph.get_markov_blanket([node]), blanket(arrows, both, node)
    open_to = [{v for v in set(graph.nodes) - given - {node} if graph.is_mconnected(node, v, given)} for given in (seen, right)]
    print(f'{name}: the blanket of {node} is {sorted(seen)}, given which it depends on {sorted(open_to[0])}. By the definition '
          f'it is {sorted(right)}, given which it depends on {sorted(open_to[1])}')  # fmt: skip
    assert seen < right and open_to[0] and not open_to[1], 'this has changed'
arrows = cases['X -> Y <- Z'][0]
assert set(DAG(arrows).get_markov_blanket('X')) == {'Y', 'Z'}, 'this has changed'

graph = ADMG(directed_ebunch=[('P', 'B')], bidirected_ebunch=[('A', 'B')])
above, below, sub = graph.get_ancestors('A'), graph.get_descendants('A'), graph.get_ancestral_graph(['B'])
print(f'A <-> B <- P: ancestors of A {above}, descendants of A {below}, of B {sorted(graph.get_ancestors("B"))}, '
      f'ancestral graph of B {list(sub.nodes)}')  # fmt: skip
assert above == below == set() and set(sub.nodes) == {'B'}, 'this has changed'
PY
