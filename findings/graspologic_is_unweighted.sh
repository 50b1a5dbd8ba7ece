#!/usr/bin/env bash
# graspologic 3.4.4: of graphs of networkx, is_unweighted says the opposite.
#
# Expected: is_unweighted returns "True if unweighted, False if weighted". The matrix of a graph, dense or sparse, gives the same answer.
# Seen: for a graph of networkx, it returns what nx.is_weighted returns, which is True if each edge has a weight. A graph without weights
# is said to be weighted, and one with the weights 2.5 to be unweighted. Matrices are right.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet graspologic==3.4.4 graspologic-native==1.3.1 networkx==3.6.1 numpy==1.26.4 scipy==1.17.1 \
  pandas==3.0.6 scikit-learn==1.9.1 matplotlib==3.11.2 gensim==4.4.0 hyppo==0.5.2 POT==0.9.7.post1 umap-learn==0.5.12 \
  beartype==0.18.5 statsmodels==0.14.6
cd "$folder"
MPLBACKEND=Agg OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import networkx as nx
import numpy as np
from graspologic.utils import is_unweighted
from scipy.sparse import csr_array

print(f'graspologic {version("graspologic")}')
for kind in (nx.Graph, nx.DiGraph):
    for weighted in (False, True):
        graph = nx.path_graph(4, create_using=kind)
        if weighted:
            nx.set_edge_attributes(graph, 2.5, 'weight')
        matrix = nx.to_numpy_array(graph)
        right = bool(np.isin(matrix, (0, 1)).all())
        seen = bool(is_unweighted(graph))
        others = [bool(is_unweighted(matrix)), bool(is_unweighted(csr_array(matrix)))]
        print(f'{kind.__name__}, {"all weights 2.5" if weighted else "without weights"}: is_unweighted {seen}, '
              f'of its matrix {others[0]}, sparse {others[1]}, expected {right}')  # fmt: skip
        assert others == [right, right] and seen != right and right != weighted, 'this has changed'
PY
