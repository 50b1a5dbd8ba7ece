#!/usr/bin/env bash
# sinkhorn-transformer 0.11.4: from the sorted buckets, attention without causality takes keys in place of values.
#
# Expected: Sparse Sinkhorn attention sorts keys and values by the same matrix, and returns means of values of the bucket itself and of
# the sorted one (Tay et al. 2020, section 3.2). Where all values are 0, so is the output.
# Seen: the sorted values are a second copy of the sorted keys. Outputs are means of values and of keys, and values of other buckets are
# never read. If kv_bucket_size differs from bucket_size, there is no bucket of its own, and values have no effect at all: the second half
# of the weights of to_kv has gradient 0. The options n_sortcut and causal are right. There is no error, because keys have the shape of
# values.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet torch==2.13.0 numpy==2.4.6
"$folder/venv/bin/pip" install --quiet --no-deps sinkhorn-transformer==0.11.4 einops==0.8.2 axial-positional-embedding==0.3.12 \
  local-attention==1.11.2 hyper-connections==0.4.11 torch-einops-utils==0.2.0 product-key-memory==0.1.10
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import numpy as np
import torch
from sinkhorn_transformer import SinkhornTransformer
from sinkhorn_transformer.sinkhorn_transformer import SinkhornAttention, SinkhornSelfAttention

print(f'sinkhorn-transformer {version("sinkhorn-transformer")}')
length, width, size = 6, 3, 2
torch.manual_seed(0)
q, k, v = torch.randn(3, 1, 1, length, width)


def softmax(scores):
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True)


def by_definition(q, k, v, sorted_from):
    """One head: each bucket attends to the bucket with the best mean (by its weight), and to itself."""
    q, k, v, sorted_from = (t.numpy()[0, 0].reshape(-1, size, width) for t in (q, k, v, sorted_from))
    scores = softmax(q.mean(1) @ k.mean(1).T / np.sqrt(width))
    out = []
    for i, row in enumerate(scores):
        best = row.argmax()
        keys, values = np.concatenate((row[best] * k[best], k[i])), np.concatenate((row[best] * sorted_from[best], v[i]))
        out.append(softmax(q[i] @ keys.T / np.sqrt(width)) @ values)
    return np.concatenate(out)


layer = SinkhornAttention(size, width, width, 1, length)
seen = layer(q, k, v)[0, 0].numpy()
error, other = np.abs(seen - by_definition(q, k, v, v)).max(), np.abs(seen - by_definition(q, k, v, k)).max()
print(f'distance of the output from the definition {error:.3f}, from one with sorted keys as values {other:.1e}')
assert error > 0.1 and other < 1e-5, 'this has changed'

zero = torch.zeros_like(v)
kinds = (('', {}, True), (' with n_sortcut=1', {'n_sortcut': 1}, False), (' with kv_bucket_size=3', {'kv_bucket_size': 3}, True))
for name, options, wrong in kinds:
    part = SinkhornAttention(size, width, width, 1, length, **options)
    most, moved = float(part(q, k, zero).abs().max()), float((part(q, k, v) - part(q, k, zero)).abs().max())
    print(f'attention{name}: of values that are all 0, the largest output is {most:.3f}, and other values move it by {moved:.3f}')
    assert (most > 0.1) == wrong and (moved == 0) == ('kv_bucket_size' in options), 'this has changed'

x = torch.randn(1, length, 4)
for causal in (False, True):
    whole = SinkhornSelfAttention(4, size, length, heads=2, causal=causal)
    with torch.no_grad():
        whole.to_kv.weight[4:] = 0
        for name, p in whole.named_parameters():
            if name.endswith('null_values'):
                p.zero_()
        most = float((whole(x) - whole.to_out.bias).abs().max())
    print(f'self-attention, causal {causal}: with values that are all 0, outputs differ from the bias by {most:.3f}, expected 0')
    assert (most > 0.01) != causal, 'this has changed'

model = SinkhornTransformer(4, 1, length, heads=2, bucket_size=size, kv_bucket_size=3)
model(x).square().sum().backward()
gradient = next(p.grad for name, p in model.named_parameters() if name.endswith('to_kv.weight'))
keys, values = (float(part.abs().max()) for part in (gradient[:4], gradient[4:]))
print(f'model with kv_bucket_size=3: largest gradient of the weights of keys {keys:.4f}, of values {values:.4f}')
assert gradient[:4].any() and not gradient[4:].any(), 'this has changed'
PY
