#!/usr/bin/env bash
# karateclub 1.3.3: the random walks of FEATHER lose a part of their probability at each step: for leaves, half of it in two steps.
#
# Expected: FeatherNode and FeatherGraph use "characteristic functions of node features with random walk weights". The weights of a node
# are probabilities, so that features of 0 have the characteristic function E cos(0) = 1 at each distance.
# Seen: fit adds a self-loop to each node, which is known. networkx counts it twice in the degree and once in the adjacency matrix, so
# that each step of a node with d neighbors keeps (d + 1) / (d + 2) only. The characteristic function depends on degrees and
# distances where there is nothing to describe. Other estimators, as NetMF and GraRep, normalise in this way.
# The self-loops: https://github.com/benedekrozemberczki/karateclub/issues/136
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet networkx==2.6.3 numpy==1.26.4 scipy==1.11.4 scikit-learn==1.5.2
"$folder/venv/bin/pip" install --quiet --no-deps karateclub==1.3.3
cd "$folder"
"$folder/venv/bin/python" -W ignore - <<'PY'
import sys
from importlib import import_module
from importlib.metadata import distribution
from types import ModuleType

import networkx as nx
import numpy as np

package = distribution('karateclub')
# The packages without their imports.
for name in ('karateclub', 'karateclub.graph_embedding', 'karateclub.node_embedding', 'karateclub.node_embedding.attributed'):
    sys.modules[name] = ModuleType(name)
    sys.modules[name].__path__ = [str(package.locate_file(name.replace('.', '/')))]
sys.modules['karateclub.estimator'] = import_module('karateclub.estimator')
print(f'karateclub {package.version}')
feather = import_module('karateclub.node_embedding.attributed.feathernode').FeatherNode
star = nx.star_graph(5)
model = feather(order=3, eval_points=2)
model.fit(star.copy(), np.zeros((6, 1)))
blocks = model.get_embedding().reshape(6, 3, 4)[:, :, :2]  # The cosines of two points for walks of 1, 2 and 3 steps.
walk = nx.to_numpy_array(star) + np.eye(6)
walk /= walk.sum(1, keepdims=True)
right = [np.linalg.matrix_power(walk, steps).sum(1) for steps in (1, 2, 3)]
for node, name in ((0, 'center'), (1, 'leaf')):
    print(f'{name}: E cos(0) after 1, 2, 3 steps {blocks[node, :, 0].round(4).tolist()}, of a walk {[float(r[node]) for r in right]}')
lost = (walk.astype(bool).sum(1) / (walk.astype(bool).sum(1) + 1.0)).reshape(-1, 1) * walk
expected = np.stack([np.linalg.matrix_power(lost, steps).sum(1) for steps in (1, 2, 3)], 1)
assert np.allclose(blocks, expected[:, :, None]) and np.allclose(right, 1), 'this has changed'
assert blocks[1, 1, 0] < 0.6, 'this has changed'
PY
