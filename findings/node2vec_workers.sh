#!/usr/bin/env bash
# node2vec 0.5.0: the number of walks of a single node is multiplied by the number of workers.
#
# Expected: sampling_strategy sets 'num_walks' of a node, the number of walks which begin there. workers is the number of processes, and
# changes no number of walks.
# Seen: each worker compares its own count with the number of the node. With 3 walks of 12 and four workers, a node has 12, as if nothing
# were set. With two workers it has 6. Embeddings then depend on the machine that made them. The walks of other nodes are right.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet node2vec==0.5.0 gensim==4.4.0 networkx==3.6.1 numpy==1.26.4 scipy==1.17.1 joblib==1.6.0
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from collections import Counter
from importlib.metadata import version

import networkx as nx
import numpy as np
from joblib import parallel_backend
from node2vec import Node2Vec

print(f'node2vec {version("node2vec")}')
total, own = 12, 3
for workers in (1, 2, 4):
    with parallel_backend('threading'):
        model = Node2Vec(
            nx.path_graph(4), walk_length=5, num_walks=total, workers=workers, quiet=True, sampling_strategy={0: {'num_walks': own}}
        )
    counts = Counter(walk[0] for walk in model.walks)
    seen = np.array([counts[str(v)] for v in range(4)])
    right = np.where(np.arange(4) == 0, own, total)
    print(f'{workers} workers: walks from each node {seen.tolist()}, expected {right.tolist()}')
    assert (seen[1:] == right[1:]).all() and seen[0] == min(own * workers, total), 'this has changed'
PY
