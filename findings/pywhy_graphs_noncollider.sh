#!/usr/bin/env bash
# pywhy-graphs 0.1.0: is_definite_noncollider is True for y in x -> y o-o z, where y may be a collider.
#
# Expected: "Definite noncolliders have the form: node1 *-* node2 -> node3, or node1 <- node2 *-* node3, or node1 *-o node2 o-* node3 with
# node1 and node3 non-adjacent". "If it is not a definite non-collider, then it may be a definite collider, or uncertain" (docstring).
# Seen: algorithms/pag.py says False for two arrowheads, and for two circles with adjacent ends, and True for all else. An arrowhead at y
# on one side and a circle on the other is none of the three forms: the circle may be an arrowhead, so that y is a collider. So each
# triple with an arrowhead and a circle is a definite non-collider.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet pywhy-graphs==0.1.0 networkx==3.4.2 numpy==1.26.4 scipy==1.13.1
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version
from itertools import product

from pywhy_graphs import PAG
from pywhy_graphs.algorithms import is_definite_noncollider

print(f'pywhy-graphs {version("pywhy-graphs")}')
kinds = ('->', '<-', '<->', 'o->', '<-o', 'o-o')


def edge(graph, u, v, kind):
    if kind == '<->':
        graph.add_edge(u, v, 'bidirected')
    if kind in ('->', 'o->'):
        graph.add_edge(u, v, 'directed')
    if kind in ('<-', '<-o'):
        graph.add_edge(v, u, 'directed')
    if kind in ('<-o', 'o-o'):
        graph.add_edge(u, v, 'circle')
    if kind in ('o->', 'o-o'):
        graph.add_edge(v, u, 'circle')


wrong = []
for left, right in product(kinds, kinds):
    graph = PAG()
    edge(graph, 'x', 'y', left)
    edge(graph, 'y', 'z', right)
    documented = right == '->' or left == '<-' or (left in ('<-o', 'o-o') and right in ('o->', 'o-o'))
    seen = is_definite_noncollider(graph, 'x', 'y', 'z')
    if seen != documented:
        wrong.append(f'x {left} y {right} z')
        assert seen and (left in ('->', '<->', 'o->')) != (right in ('<-', '<->', '<-o')), 'this has changed'
print(f'definite non-colliders y that are none, of {len(kinds) ** 2} triples: {", ".join(wrong)}')
assert 'x -> y o-o z' in wrong and len(wrong) == 12, 'this has changed'
PY
