#!/usr/bin/env bash
# bctpy 0.6.1: assortativity_wei has four flags for directed graphs, and raises an error for each of them.
#
# Expected: flag is documented as "0 : undirected graph; strength/strength correlation", and 1 to 4 for "directed graph", from
# "out-strength/in-strength" to "in-strength/in-strength". With weights of 1, strengths are degrees, so assortativity_bin gives the values.
# Seen: every directed flag raises "ValueError: too many values to unpack", for every matrix, since strengths_dir returns three arrays, and
# two are expected. With the three taken, flag 4 would still return the value of flag 2: it takes the out-strengths at one end.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet bctpy==0.6.1 numpy==1.26.4 scipy==1.13.1 networkx==3.6.1
"$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import bct
import numpy as np

print(f'bctpy {version("bctpy")}')
matrix = np.array([[0, 1, 1, 1, 0], [0, 0, 1, 0, 1], [1, 0, 0, 0, 0], [0, 1, 1, 0, 0], [1, 0, 1, 0, 0]], dtype=float)
source, target = np.nonzero(matrix)
inward, outward = matrix.sum(0), matrix.sum(1)
ends = {1: (outward, inward), 2: (inward, outward), 3: (outward, outward), 4: (inward, inward)}
for flag, (first, second) in ends.items():
    first, second = first[source], second[target]
    mean = (first + second).mean() / 2
    right = ((first * second).mean() - mean**2) / ((first**2 + second**2).mean() / 2 - mean**2)
    try:
        seen = bct.assortativity_wei(matrix, flag)
    except ValueError as error:
        seen = f'ValueError: {error}'
    print(f'flag {flag}: {seen}, instead of {right:.4f} (assortativity_bin: {bct.assortativity_bin(matrix, flag):.4f})')
    assert abs(bct.assortativity_bin(matrix, flag) - right) < 1e-9, 'the definition is wrong'
    assert str(seen).startswith('ValueError: too many values'), 'this has changed'
symmetric = matrix + matrix.T
print(f'flag 0, undirected: {bct.assortativity_wei(symmetric):.4f}')
PY
