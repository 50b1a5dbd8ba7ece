#!/usr/bin/env bash
# pgmpy 1.1.2: has_inducing_path of MAG is True for nodes without any path, and False where one path is inducing and another is not.
#
# Expected: "True if there exists an inducing path": at least one path whose inner nodes are all colliders, each in W or above an end.
# The documentation asks for an inner node.
# Seen: the answer starts as True. A path that is not inducing makes it False, and no path makes it True. So it is whether all paths are
# inducing: nodes in two parts of a graph are said to have one, and one more path, which is not inducing, hides that there is one. A graph is
# maximal if nodes with an inducing path are adjacent. This cannot tell.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet pgmpy==1.1.2 networkx==3.6.1 numpy==2.4.6 scipy==1.17.1 pandas==3.1.1 \
  scikit-learn==1.9.1 statsmodels==0.15.0 scikit-base==1.2.0 opt_einsum==3.4.0 pyparsing==3.3.3 joblib==1.6.0 tqdm==4.70.1 \
  huggingface_hub==2.4.0
cd "$folder"
PYTHONHASHSEED=0 OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
import random
from importlib.metadata import version
from itertools import combinations

import networkx as nx
from pgmpy.base import MAG

print(f'pgmpy {version("pgmpy")}')


def paths(edges, u, v, w):
    """For each path with inner nodes, whether it is inducing. An edge is (a, b, mark at a, mark at b)."""
    marks = {pair: mark for a, b, at_a, at_b in edges for pair, mark in (((a, b), at_b), ((b, a), at_a))}
    arrows = nx.DiGraph([(a, b) for a, b in marks if marks[a, b] == '>' and marks[b, a] == '-'])
    up = {end: nx.ancestors(arrows, end) if end in arrows else set() for end in (u, v)}
    found = []
    for path in nx.all_simple_paths(nx.Graph(list(marks)), u, v):
        inner = list(zip(path, path[1:], path[2:]))
        if inner:
            found.append(all(marks[a, b] == '>' == marks[c, b] and b in up[u] | up[v] | w for a, b, c in inner))
    return found


both, second = ('>', '>'), ('-', '>')
cases = {
    'two parts': [('U', 'A', *second), ('V', 'B', *second)],
    'U <-> C <-> V': [('U', 'C', *both), ('C', 'V', *both)],
    'U <-> C <-> V and U -> D -> V': [('U', 'C', *both), ('C', 'V', *both), ('U', 'D', *second), ('D', 'V', *second)],
}
for name, edges in cases.items():
    seen, right = MAG(ebunch=edges).has_inducing_path('U', 'V', {'C'}), any(paths(edges, 'U', 'V', {'C'}))
    print(f'{name}, with W = {{C}}: {seen}, by the definition {right}')
    assert (seen == right) == (name == 'U <-> C <-> V'), 'this has changed'

rng = random.Random(0)
wrong = total = 0
for _ in range(50):
    edges = [(a, b, *rng.choice([both, second])) for a, b in combinations('ABCDE', 2) if rng.random() < 0.5]
    graph = MAG(ebunch=edges)
    for u, v in nx.non_edges(graph):
        found, seen = paths(edges, u, v, set()), graph.has_inducing_path(u, v, set())
        assert seen == all(found), 'this has changed'
        wrong, total = wrong + (seen != any(found)), total + 1
print(f'random graphs of 5 nodes: of {total} pairs of nodes which are not adjacent, {wrong} have a wrong answer')
assert wrong > 20, 'this has changed'
PY
