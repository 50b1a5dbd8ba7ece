#!/usr/bin/env bash
# torch 2.13.0: the sparsity of a BlockMask is negative, or far too low, if the length is no multiple of the block size.
#
# Expected: BlockMask.sparsity "computes the percentage of blocks that are sparse (i.e. not computed)". It is between 0 and 100,
# and follows from to_dense(), which has an entry per block. Printing a mask shows it.
# Seen: the number of computed blocks is multiplied by the full size of a block, and divided by the number of pairs of queries
# and keys. But blocks at the border are only partly filled. A causal mask of length 129 has 4 blocks of 128, 3 of
# them computed. Its sparsity is -195 %, and 25 % is right. At length 1000, it is 41 %, and 43.75 % is right.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet torch==2.13.0 numpy==2.4.6
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
import numpy as np
import torch
from torch.nn.attention.flex_attention import create_block_mask

print(f'torch {torch.__version__}')


def causal(batch, head, query, key):
    return query >= key


seen = {}
for length in (128, 129, 200, 520, 1000, 1024):
    mask = create_block_mask(causal, 1, 1, length, length, device='cpu', BLOCK_SIZE=128)
    size = -(-length // 128)
    pairs = np.tri(length, dtype=bool)
    blocks = [pairs[i * 128:(i + 1) * 128, j * 128:(j + 1) * 128].any() for i in range(size) for j in range(size)]
    right, seen[length] = 100 * (1 - np.mean(blocks)), mask.sparsity()
    assert np.array_equal(mask.to_dense().numpy().ravel().astype(bool), blocks)
    print(f'length {length}: sparsity {seen[length]:.2f} %, blocks that are not computed {right:.2f} %')
    assert np.isclose(seen[length], right) == (length % 128 == 0), 'this has changed'
assert seen[129] < -190 and seen[200] < -20 and 0 < seen[520] < 10, 'this has changed'
PY
