#!/usr/bin/env bash
# scikit-fingerprints 2.1.0: the count similarity of two fingerprints of its own is wrong, since 8-bit integers overflow.
#
# Expected: tanimoto_count_similarity takes a "count input array or sparse matrix", and "Calculated similarity falls within the range of
# [0, 1]". It is the same as in bulk_tanimoto_count_similarity of both. For vectors of zeros and ones it is tanimoto_binary_similarity
# (docstrings, skfp.distances).
# Seen: products of the vectors are summed in their own type. Fingerprints with count=False are uint8, so that a sum above 255 wraps
# around, as does the sum of the squares of counts above 15. The Tanimoto and Dice similarities of two vectors, dense or sparse, are far
# off, and may be above 1. There is no warning. The bulk functions convert to floating point first, and are right, and so are fingerprints
# with count=True, which are uint32.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet scikit-fingerprints==2.1.0 numpy==2.4.6 scipy==1.17.1 scikit-learn==1.9.1
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import numpy as np
from scipy.sparse import csr_array
from skfp.distances import (bulk_dice_count_similarity, bulk_tanimoto_count_similarity, dice_count_similarity,
                            tanimoto_binary_similarity, tanimoto_count_similarity)  # fmt: skip
from skfp.fingerprints import RDKitFingerprint

print(f'scikit-fingerprints {version("scikit-fingerprints")}')
cholesterol, testosterone = 'CC(C)CCCC(C)C1CCC2C1(CCC3C2CC=C4C3(CCC(C4)O)C)C', 'CC12CCC3C(C1CCC2O)CCC4=CC(=O)CCC34C'
bits = RDKitFingerprint().transform([cholesterol, testosterone])
seen, right = tanimoto_count_similarity(*bits), bulk_tanimoto_count_similarity(bits)[0, 1]
print(f'cholesterol and testosterone, {bits.dtype}, {bits.sum(1)} bits: count similarity {seen:.4f}, in bulk {right:.4f}, '
      f'binary {tanimoto_binary_similarity(*bits):.4f}, as float {tanimoto_count_similarity(*bits.astype(float)):.4f}')  # fmt: skip
assert bits.dtype == np.uint8 and np.isclose(right, tanimoto_binary_similarity(*bits)), 'this has changed'
assert np.isclose(right, tanimoto_count_similarity(*bits.astype(float))) and abs(seen - right) > 0.1, 'this has changed'

counts = np.array([[11, 16, 13, 7], [18, 9, 7, 2]], dtype=np.uint8)
for name, one, bulk in (('Tanimoto', tanimoto_count_similarity, bulk_tanimoto_count_similarity),
                        ('Dice', dice_count_similarity, bulk_dice_count_similarity)):  # fmt: skip
    dense, sparse = one(*counts), one(*(csr_array(row[None]) for row in counts))
    print(f'{name} similarity of {counts.tolist()}: {dense:.4f}, sparse {sparse:.4f}, in bulk {bulk(counts)[0, 1]:.4f}')
    assert np.isclose(bulk(counts)[0, 1], one(*counts.astype(float))) and min(dense, sparse) > 1, 'this has changed'
PY
