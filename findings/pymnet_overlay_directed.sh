#!/usr/bin/env bash
# pymnet 1.0.0: the overlay network of a directed network is undirected, with the sum of the weights of both directions.
#
# Expected: overlay_network "Returns the overlay network of a multilayer network with 1 aspect". The overlay adds the adjacency matrices
# of the layers. So it is directed for directed layers, as aggregate(net, 1) of the same module is.
# Seen: pymnet/transforms.py goes through both directions, if the network is directed. But the new network has the default, undirected, so
# that the weights of 1 -> 2 and 2 -> 1 are added up.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet pymnet==1.0.0 numpy==2.4.6 scipy==1.17.1 networkx==3.6.1 matplotlib==3.11.1
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import numpy as np
import pymnet

print(f'pymnet {version("pymnet")}')
for directed in (False, True):
    net = pymnet.MultiplexNetwork(couplings='none', directed=directed)
    net[1, 2, 'a'] = 1
    if directed:
        net[2, 1, 'b'] = 10
    net[2, 3, 'b'] = 4
    overlay, aggregate = pymnet.transforms.overlay_network(net), pymnet.transforms.aggregate(net, 1)
    matrices = [np.array([[other[i, j] for j in (1, 2, 3)] for i in (1, 2, 3)]) for other in (overlay, aggregate)]
    right = sum(np.array([[net[i, j, layer] for j in (1, 2, 3)] for i in (1, 2, 3)]) for layer in 'ab')
    print(f'directed={directed}: sum of the layers {right.tolist()}, aggregate {matrices[1].tolist()}, overlay {matrices[0].tolist()}')
    assert np.array_equal(matrices[1], right) and np.array_equal(matrices[0], right + right.T if directed else right), 'this has changed'
    assert not overlay.directed and aggregate.directed == directed, 'this has changed'
PY
