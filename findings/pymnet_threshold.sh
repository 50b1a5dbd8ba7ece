#!/usr/bin/env bash
# pymnet 1.0.0: threshold ignores ignoreCouplingEdges, and has a NameError for all networks that are not fully interconnected.
#
# Expected: threshold(net, threshold, method=">=", ignoreCouplingEdges=False) has an argument not to cut the edges that couple the layers.
# It copies networks that are not fully interconnected, as relabel and subnet of the same module do (docstring: "fullyInterconnected:
# Determines if the network is fully interconnected, i.e. all nodes are shared between all layers").
# Seen: nothing reads ignoreCouplingEdges. Both values cut the couplings of weight 1 from the intra-layer edges of weight 5, at a
# threshold of 2. For a network with fullyInterconnected=False, pymnet/transforms.py reads "lnodelayer", which is not defined, for
# nodelayer.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet pymnet==1.0.0 numpy==2.4.6 scipy==1.17.1 networkx==3.6.1 matplotlib==3.11.1
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import pymnet

print(f'pymnet {version("pymnet")}')
net = pymnet.MultiplexNetwork(couplings=[('categorical', 1.0)])
net[1, 2, 'a'] = 5
net[1, 2, 'b'] = 7
print(f'edges {sorted(net.edges)}')
for ignore in (False, True):
    seen = sorted(pymnet.transforms.threshold(net, 2, ignoreCouplingEdges=ignore).edges)
    print(f'threshold 2, ignoreCouplingEdges={ignore}: {seen}')
    assert seen == [(1, 2, 'a', 'a', 5), (1, 2, 'b', 'b', 7)], 'this has changed'

net = pymnet.MultilayerNetwork(aspects=1, fullyInterconnected=False)
net[1, 2, 'a', 'a'] = 5
net[2, 3, 'b', 'b'] = 1
print(f'not fully interconnected: edges {sorted(net.edges)}, relabelled {sorted(pymnet.transforms.relabel(net, {3: 4}).edges)}')
try:
    pymnet.transforms.threshold(net, 2)
    raise AssertionError('this has changed')
except NameError as error:
    print(f'threshold 2: NameError: {error}')
    assert 'lnodelayer' in str(error), 'this has changed'
PY
