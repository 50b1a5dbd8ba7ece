#!/usr/bin/env bash
# teaspoon 1.6.0: the maximum persistence ratio of a graph takes the largest death for the largest persistence, and is negative.
#
# Expected: point_summaries has the statistics "from the paper Persistent Homology of Complex Networks for Dynamic State
# Detection" (Myers, Munch and Khasawneh 2019). The first is 1 less the largest persistence, death - birth, over that of a cycle
# of n nodes, which is ceil(n / 3) - 1. It is 0 for a cycle, the graph of a periodic signal, and near 1 for graphs without a
# long cycle.
# Seen: teaspoon/TDA/PHN.py divides the largest number of the diagram, which is a death, by ceil(n / 3) - 1. All loops of a
# graph are born at a distance of 1 or later, so that the ratio is too small by 1 / (ceil(n / 3) - 1) or more. A cycle of 9
# nodes has -0.5, and the value of a cycle depends on its number of nodes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet ripser==0.6.15 scikit-learn==1.8.0 numpy==2.4.6 scipy==1.17.1 pandas==3.1.1 \
  networkx==3.6.1 matplotlib==3.11.2
"$folder/venv/bin/pip" install --quiet --no-deps teaspoon==1.6.0
cd "$folder"
MPLBACKEND=Agg OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import networkx as nx
import numpy as np
from teaspoon.SP.network_tools import shortest_path
from teaspoon.TDA.PHN import PH_network, point_summaries

print(f'teaspoon {version("teaspoon")}')
cycles = {f'a cycle of {n} nodes': nx.cycle_graph(n) for n in (9, 12, 31, 90)}
others = {'a ring of 4 neighbors': nx.circulant_graph(30, [1, 2]), 'a grid': nx.grid_2d_graph(4, 4)}
for name, graph in {**cycles, **others}.items():
    adjacency = nx.to_numpy_array(graph)
    n = len(adjacency)
    diagram = PH_network(shortest_path(adjacency))
    seen, persistence = point_summaries(diagram, adjacency)[0], np.diff(diagram[1]).max()
    right = 1 - persistence / (np.ceil(n / 3) - 1)
    print(f'{name}: ratio {seen:.3f}, by the definition {right:.3f}. Largest persistence {persistence:.0f}, of births and '
          f'deaths {np.unique(diagram[1], axis=0).astype(int).tolist()}')  # fmt: skip
    assert np.isclose(seen, 1 - diagram[1][:, 1].max() / (np.ceil(n / 3) - 1)) and seen < right, 'this has changed'
    if name in cycles:
        assert right == 0 and seen < 0 and diagram[1].tolist() == [[1, np.ceil(n / 3)]], 'this has changed'
PY
