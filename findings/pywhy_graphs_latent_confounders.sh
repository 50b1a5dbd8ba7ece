#!/usr/bin/env bash
# pywhy-graphs 0.1.0: a latent confounder of three variables leaves two of them unconfounded, and two latent ones come back into the graph.
#
# Expected: set_nodes_as_latent_confounders sets "nodes as latent unobserved confounders", which must be "common causes of variables
# within the graph", and returns "The mixed-edge causal graph that results" (docstring). Its separations of the other nodes are those of
# the graph given. So each pair of effects of a latent node has a bidirected edge. Latent nodes are not in it.
# Seen: algorithms/generic.py joins the effects A, B, C of the latent node in a row, A <-> B <-> C, without A <-> C. Then A and C are
# m-separated, as B is a collider, though they have a common cause. If one latent node is a cause of another, it is made a parent of its
# effects, and the other is joined with a bidirected edge, after they were removed, which adds them again.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet pywhy-graphs==0.1.0 networkx==3.4.2 numpy==1.26.4 scipy==1.13.1
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version
from itertools import combinations

import networkx as nx
from pywhy_graphs.algorithms import set_nodes_as_latent_confounders
from pywhy_graphs.networkx import m_separated

print(f'pywhy-graphs {version("pywhy-graphs")}')
for effects in ('AB', 'ABC', 'ABCD'):
    graph = nx.DiGraph([('P', 'U')] + [('U', effect) for effect in effects])
    admg = set_nodes_as_latent_confounders(graph, ['U'])
    wrong = [pair for pair in combinations(effects, 2)
             if m_separated(admg, {pair[0]}, {pair[1]}, {'P'}) != nx.is_d_separator(graph, {pair[0]}, {pair[1]}, {'P'})]  # fmt: skip
    print(f'P -> U -> {", ".join(effects)}, U latent: bidirected edges {list(admg.edges()["bidirected"])}. '
          f'Separated by P in this graph only: {wrong}')  # fmt: skip
    assert len(admg.edges()['bidirected']) == len(effects) - 1, 'this has changed'
    assert len(wrong) == {'AB': 0, 'ABC': 1, 'ABCD': 3}[effects], 'this has changed'

graph = nx.DiGraph([('L', 'A'), ('L', 'B'), ('L', 'M'), ('M', 'C'), ('M', 'D')])
admg = set_nodes_as_latent_confounders(graph, ['L', 'M'])
result = {kind: list(edges) for kind, edges in admg.edges().items() if len(edges)}
print(f'edges {list(graph.edges)}, L and M latent: nodes {sorted(admg.nodes)}, {result}')
assert {'L', 'M'} <= set(admg.nodes), 'this has changed'
PY
