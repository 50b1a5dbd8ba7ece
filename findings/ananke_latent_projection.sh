#!/usr/bin/env bash
# ananke-causal 0.5.0: latent_projection gives a vertex a bidirected edge to itself, if a projected vertex has one to its own child.
#
# Expected: "Computes latent projection", "list of vertices to retain after latent projection" (docstring of ADMG.latent_projection,
# ananke.readthedocs.io/en/latest/ananke.graphs.html). It is an ADMG of the retained vertices with the same m-separations among them. An
# ADMG may have both D -> C and D <-> C.
# Seen: latent_project_single_vertex in graphs/admg.py connects each sibling of the projected vertex with each child of it, also if both are
# one. The result has the edge C <-> C. Further calls fail with KeyErrors: m_separated of two vertices of the result, a subgraph, or the
# same latent_projection, if it projects C as well. Most of 300 random graphs without such pairs have right projections: the other ones get
# such a pair when the first of two vertices is projected.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet numpy==2.4.6 networkx==3.6.1
"$folder/venv/bin/pip" install --quiet --no-deps ananke-causal==0.5.0
cd "$folder"
"$folder/venv/bin/python" -W ignore - <<'PY'
import itertools
import random
from importlib.metadata import version

import networkx as nx
from ananke.graphs import ADMG

print(f'ananke-causal {version("ananke-causal")}')
graph = ADMG(['A', 'B', 'C', 'D'], di_edges=[('A', 'D'), ('D', 'C'), ('C', 'B')], bi_edges=[('D', 'C')])
projection = graph.latent_projection(['A', 'B', 'C'])
print(f'A -> D -> C -> B, D <-> C without D: directed {sorted(projection.di_edges)}, bidirected {sorted(projection.bi_edges)}')
assert projection.di_edges == {('A', 'C'), ('C', 'B')} and projection.bi_edges == {('C', 'C')}, 'this has changed'
right = ADMG(['A', 'B', 'C'], di_edges=[('A', 'C'), ('C', 'B')])
assert right.subgraph(['A', 'B']).vertices.keys() == {'A', 'B'}
try:
    projection.subgraph(['A', 'B'])
except KeyError as e:
    print(f'subgraph of A and B: {type(e).__name__}')
else:
    raise AssertionError('this has changed')


def separations(vertices, separated):
    return [separated(a, b, [c for c in vertices if c not in (a, b)][:r]) for a, b in itertools.combinations(vertices, 2) for r in (0, 1)]


rng = random.Random(0)
counts = {}
for _ in range(300):
    pairs = list(itertools.combinations('ABCDE', 2))
    directed, bidirected = ([pair for pair in pairs if rng.random() < 0.3] for _ in range(2))
    canonical = nx.DiGraph(directed)
    canonical.add_nodes_from('ABCDE')
    for a, b in bidirected:
        canonical.add_edges_from([((a, b), a), ((a, b), b)])
    graph = ADMG('ABCDE', di_edges=directed, bi_edges=bidirected)
    try:
        result = graph.latent_projection(['A', 'C', 'E'])
        seen = separations('ACE', result.m_separated)
        outcome = 'an edge from a vertex to itself' if any(a == b for a, b in result.bi_edges) else 'right' if seen == separations(
            'ACE', lambda a, b, given: nx.is_d_separator(canonical, {a}, {b}, set(given))) else 'wrong'  # fmt: skip
    except KeyError:
        outcome = 'a KeyError'
    bow = 'with both edges between a projected vertex and its child' if any(
        pair[0] in 'BD' for pair in set(directed) & set(bidirected)) else 'others'  # fmt: skip
    counts.setdefault(bow, {}).setdefault(outcome, 0)
    counts[bow][outcome] += 1
print(f'300 random graphs of 5 vertices, 2 projected: {counts}')
assert counts['with both edges between a projected vertex and its child'].get('a KeyError', 0) > 5, 'this has changed'
assert counts['others']['right'] > 150 and not any('wrong' in outcomes for outcomes in counts.values()), 'this has changed'
PY
