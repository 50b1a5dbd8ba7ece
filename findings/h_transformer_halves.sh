#!/usr/bin/env bash
# h-transformer-1d 0.1.9: without causal=True, the first half of a sequence never sees the second half, and the second never the first.
#
# Expected: HTransformer1D is the model of the paper (Zhu and Soricut 2021), and is meant to encode long contexts. The paper approximates
# attention between all pairs of tokens: near ones exactly, and far ones in coarser blocks, the coarsest of which are the two halves.
# Seen: the attention that is not causal builds one level too few. The missing one is the coarsest, which joins the halves. So a sequence
# is handled as two sequences: changing all tokens of one half moves no output of the other, in no layer of a model of any depth.
# By the definition all of them move. The causal one has this level.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet torch==2.13.0 numpy==2.4.6
"$folder/venv/bin/pip" install --quiet --no-deps h-transformer-1d==0.1.9 einops==0.8.2 rotary-embedding-torch==0.9.1
cd "$folder"
"$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import torch
from h_transformer_1d import HTransformer1D

print(f'h-transformer-1d {version("h-transformer-1d")}')
for causal in (False, True):
    for blocks in (4, 8, 16):
        for depth in (1, 4):
            torch.manual_seed(0)
            n, half = 8 * blocks, 4 * blocks
            options = {'num_tokens': 10, 'dim': 16, 'heads': 2, 'dim_head': 8, 'block_size': 8}
            model = HTransformer1D(depth=depth, max_seq_len=n, causal=causal, **options).eval()
            x = torch.randint(10, (1, n))
            last, first = x.clone(), x.clone()
            last[:, half:] = torch.randint(10, (1, half))
            first[:, :half] = torch.randint(10, (1, half))
            with torch.no_grad():
                out = model(x)
                onto_first = (model(last) - out)[:, :half].abs().amax((0, 2))
                onto_last = (model(first) - out)[:, half:].abs().amax((0, 2))
            print(f'causal={causal}, {blocks} blocks, depth {depth}: a new second half moves {(onto_first > 0).sum()} of {half} '
                  f'tokens of the first, and a new first half {(onto_last > 0).sum()} of the second')  # fmt: skip
            assert (onto_first == 0).all(), 'this has changed'
            assert (onto_last > 1e-6).any() if causal else (onto_last == 0).all(), 'this has changed'
PY
