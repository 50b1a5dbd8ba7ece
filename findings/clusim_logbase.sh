#!/usr/bin/env bash
# clusim 0.4: the adjusted mutual information of a clustering and itself is 1.64 with logbase=e, and 4.35 with logbase=10.
#
# Expected: adj_mi, "logbase: The base of all logarithms (recommended to use 2 for bits)" (docstring). The adjusted value is a quotient of
# two differences of informations, so that the base cancels. Two equal clusterings have 1, as in adjusted_mutual_info_score of
# scikit-learn.
# Seen: the expectation and the entropies of clusim/sim.py have the base logbase. But the mutual information is taken from nmi, which has
# no such argument, and always has the base 2. So the value changes with the base, also its sign. The base 2 is right.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet clusim==0.4 numpy==2.4.6 scipy==1.17.1 mpmath==1.3.0 igraph==1.0.0 scikit-learn==1.9.1
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import numpy as np
from clusim.clustering import Clustering
from clusim.sim import adj_mi
from sklearn.metrics import adjusted_mutual_info_score

print(f'clusim {version("clusim")}')
first, other = [i // 3 for i in range(9)], [i % 2 for i in range(9)]
a, b = (Clustering(elm2clu_dict={i: [label] for i, label in enumerate(labels)}) for labels in (first, other))
right = [adjusted_mutual_info_score(first, first), adjusted_mutual_info_score(first, other)]
seen = {}
for base in (2, np.e, 10):
    seen[base] = [adj_mi(a, a, logbase=base), adj_mi(a, b, logbase=base)]
    print(f'base {base:.3f}: of the first and itself {seen[base][0]:.4f}, of both {seen[base][1]:.4f}. scikit-learn: {np.round(right, 4)}')
assert np.allclose(seen[2], right), 'this has changed'
assert np.allclose(seen[np.e], [1.63799, -0.11376], atol=1e-4) and np.allclose(seen[10], [4.34626, 0.01501], atol=1e-4), 'this has changed'
PY
