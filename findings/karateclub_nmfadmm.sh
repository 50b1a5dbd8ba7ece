#!/usr/bin/env bash
# karateclub 1.3.3: half of the embedding of NMFADMM does not depend on the graph: it is the random start of the algorithm.
#
# Expected: NMFADMM "learns an embedding of the normalized adjacency matrix", the factors W and H of a nonnegative factorization, by the
# alternating updates of the cited paper (Sun and Fevotte 2014). Both factors are learned.
# Seen: the update of W is stored as self.W, and all other steps read self._W, which is never changed. W is the positive part of the random
# start: equal for a path and a complete graph, and unrelated to the edges. H is fitted to it. More iterations do not help. The
# script loads the files of the class alone, as the package pins older versions than this Python has.
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
for name in ('karateclub', 'karateclub.graph_embedding', 'karateclub.node_embedding', 'karateclub.node_embedding.neighbourhood'):
    sys.modules[name] = ModuleType(name)
    sys.modules[name].__path__ = [str(package.locate_file(name.replace('.', '/')))]
sys.modules['karateclub.estimator'] = import_module('karateclub.estimator')
print(f'karateclub {package.version}')
nmf = import_module('karateclub.node_embedding.neighbourhood.nmfadmm').NMFADMM


def embedding(graph, iterations):
    model = nmf(dimensions=8, iterations=iterations)
    model.fit(graph)
    return np.split(model.get_embedding(), 2, axis=1)


start = np.maximum(np.random.RandomState(42).uniform(-0.1, 0.1, (40, 8)), 0)  # The first numbers that are drawn with seed=42.
for name, graph in (('path', nx.path_graph), ('star', lambda n: nx.star_graph(n - 1)), ('complete graph', nx.complete_graph)):
    for iterations in (1, 100):
        w, h = embedding(graph(40), iterations)
        other = embedding(nx.cycle_graph(40), iterations)
        differ = [np.abs(a - b).max() for a, b in zip((w, h), other)]
        print(f'{name}, {iterations} iterations: differs from a cycle by {differ[0]:.3f} in W and {differ[1]:.3f} in H, '
              f'W from the random start by {np.abs(w - start).max():.3f}')  # fmt: skip
        assert differ[0] == 0 and np.abs(w - start).max() < 1e-12, 'this has changed'
    assert differ[1] > 0.01, 'this has changed'
PY
