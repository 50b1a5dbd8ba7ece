#!/usr/bin/env bash
# scikit-fingerprints 2.1.0: the Harris-Lahey similarity of two equal vectors of n zeros, or n ones, is 1, not n as documented.
#
# Expected: harris_lahey_binary_similarity "falls within the range [0, n], where n is the length of vectors", and "Passing all-zero or
# all-one vectors to this function results in a similarity of n". Only with normalized=True the range is [0, 1] (docstring).
# Seen: the case is answered with 1 before the argument normalized is looked at, also in bulk_harris_lahey_binary_similarity. So two
# vectors of 1024 zeros have the similarity 1, and two equal vectors with a single one have 1024. Two vectors of zeros are
# nearly as dissimilar as can be. With normalized=True it is right.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet scikit-fingerprints==2.1.0 numpy==2.4.6 scipy==1.17.1 scikit-learn==1.9.1
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import numpy as np
from skfp.distances import bulk_harris_lahey_binary_similarity, harris_lahey_binary_similarity

print(f'scikit-fingerprints {version("scikit-fingerprints")}')
n = 1024
zeros, ones, one_bit, half = np.zeros(n, dtype=int), np.ones(n, dtype=int), np.eye(n, dtype=int)[0], np.arange(n) % 2
for name, vector in (('zeros', zeros), ('ones', ones), ('zeros but for one', one_bit), ('zeros and ones in turn', half)):
    seen, normalized = harris_lahey_binary_similarity(vector, vector), harris_lahey_binary_similarity(vector, vector, normalized=True)
    bulk = bulk_harris_lahey_binary_similarity(np.stack([vector, half]))[0, 0]
    print(f'{n} {name}, and itself: {seen}, normalized {normalized}, in bulk {bulk}. Documented: {n}')
    assert seen == bulk == (1 if vector is zeros or vector is ones else n) and normalized == 1, 'this has changed'
print(f'zeros, and zeros but for one: {harris_lahey_binary_similarity(zeros, one_bit)}')
PY
