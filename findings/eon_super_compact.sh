#!/usr/bin/env bash
# EoN 2.0: SIS_super_compact_pairwise_from_graph starts with too many edges between infected nodes, and cannot solve regular graphs.
#
# Expected: rho is the fraction of random nodes that are infected at first. The edges [SS] + 2 [SI] + [II] are all edges of the graph, in
# both directions, and [II] is rho^2 of them. On a regular graph, the infection goes on as in SIS_compact_pairwise_from_graph.
# Seen: [II] is rho of all edges, so that the edges from infected to susceptible nodes are counted in it once more. And since the equations
# divide by the variance of the degrees, a regular graph (a lattice, say) gives 0 / 0: all later numbers of infected nodes are nan, 0
# or arbitrary. The solver prints a line about its accuracy, but nothing is raised.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet EoN==2.0 networkx==3.6.1 numpy==1.26.4 scipy==1.13.1
"$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import EoN
import networkx as nx
import numpy as np

print(f'EoN {version("EoN")}')
arguments = {'rho': 0.2, 'tmin': 0, 'tmax': 6, 'tcount': 7, 'return_full_data': True}
graph = nx.barabasi_albert_graph(60, 2, seed=0)
_, _, _, ss, si, ii = EoN.SIS_super_compact_pairwise_from_graph(graph, 0.6, 1.0, **arguments)
right, seen = 2 * graph.size(), ss[0] + 2 * si[0] + ii[0]
print(f'edges in both directions at first: {seen:.2f} instead of {right}, [II] {ii[0]:.2f} instead of {0.2 * 0.2 * right:.2f}')
assert abs(ss[0] - 0.8 * 0.8 * right) < 1e-9 and abs(si[0] - 0.8 * 0.2 * right) < 1e-9, 'this has changed'
assert abs(ii[0] - 0.2 * right) < 1e-9, 'this has changed'

lattice = nx.grid_2d_graph(10, 10, periodic=True)
infected = EoN.SIS_super_compact_pairwise_from_graph(lattice, 0.6, 1.0, **arguments)[2]
compact = EoN.SIS_compact_pairwise_from_graph(lattice, 0.6, 1.0, **{**arguments, 'return_full_data': False})[2]
print(f'infected nodes of a lattice: {infected.round(2).tolist()}, by SIS_compact_pairwise_from_graph {compact.round(2).tolist()}')
assert compact.min() > 15 and not (np.abs(infected[1:] - compact[1:]) < 10).any(), 'this has changed'
PY
