#!/usr/bin/env bash
# hnswlib 0.8.0: the exact index BFIndex with space='cosine' returns distances that are no cosine distances, and may be negative.
#
# Expected: the documentation has for the space "cosine" the distance 1 - <a, b> / (|a| |b|). BFIndex is the exact index, with the same
# spaces as Index, to check an approximate index, for example.
# Seen: stored vectors are divided by their norm, but queries are not: the distance is 1 - |query| cos. The order for one query is right. The
# numbers are not: of vectors in the same direction, it is 1 - |query| instead of 0. They cannot be compared with a threshold, or with
# those of another query or of Index, which divides both. knn_query of a stored vector finds itself at any distance below 1.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet hnswlib==0.8.0 numpy==1.26.4
cd "$folder"
"$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import hnswlib
import numpy as np

print(f'hnswlib {version("hnswlib")}')
rng = np.random.default_rng(0)
stored = rng.normal(size=(50, 8)).astype(np.float32)
for length in (1.0, 0.1, 5.0):
    queries = stored[:4] / np.linalg.norm(stored[:4], axis=1, keepdims=True) * np.float32(length)
    cosine = queries @ stored.T / np.linalg.norm(queries, axis=1, keepdims=True) / np.linalg.norm(stored, axis=1)
    right = np.sort(1 - cosine, axis=1)[:, :3]
    seen = {}
    for kind in (hnswlib.Index, hnswlib.BFIndex):
        index = kind(space='cosine', dim=8)
        index.init_index(max_elements=len(stored))
        index.add_items(stored)
        if kind is hnswlib.Index:
            index.set_ef(len(stored))
        labels, seen[kind.__name__] = index.knn_query(queries, k=3)
        assert labels[:, 0].tolist() == [0, 1, 2, 3], 'this has changed'
    print(f'queries of length {length}: Index {seen["Index"][0].round(3)}, BFIndex {seen["BFIndex"][0].round(3)}, '
          f'by the definition {right[0].round(3)}')  # fmt: skip
    assert np.allclose(seen['Index'], right, atol=1e-5), 'this has changed'
    assert np.allclose(seen['BFIndex'], 1 - length * (1 - right), atol=1e-4), 'this has changed'
PY
