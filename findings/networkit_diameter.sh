#!/usr/bin/env bash
# networkit 11.3: the exact diameter of a weighted graph is cut to a whole number: 0 for a path with weights of 0.25.
#
# Expected: getDiameter is documented to return "float: Diameter of the graph", and DiameterAlgo.EXACT accepts weighted graphs. The
# largest distance that Dijkstra of the same package finds is 0.5.
# Seen: (0, 0). Distances below one vanish, and 2.75 becomes 2. Probabilities, similarities, lengths in kilometres and weights
# normalised to a sum of one all have such distances. There is no warning.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet networkit==11.3 numpy==2.4.6 scipy==1.17.1
"$folder/venv/bin/python" - <<'PY'
import networkit as nk

print(f'networkit {nk.__version__}')
seen = []
for weights in ((1.0, 2.0), (0.25, 0.25), (0.75, 2.0), (0.3, 0.3, 0.3)):
    graph = nk.Graph(len(weights) + 1, weighted=True)
    for node, weight in enumerate(weights):
        graph.addEdge(node, node + 1, weight)
    right = max(max(row) for row in nk.distance.APSP(graph).run().getDistances())
    found = nk.distance.Diameter(graph, nk.distance.DiameterAlgo.EXACT).run().getDiameter()[0]
    seen.append((round(right, 9), found))
    print(f'path with weights {weights}: largest distance {right:g}, Diameter {found}')
assert seen == [(3.0, 3), (0.5, 0), (2.75, 2), (0.9, 0)], 'this has changed'
PY
