#!/usr/bin/env bash
# product-key-memory 0.3.0: with concat_values_and_combine=True, the weights of the attention are never used, and keys do not learn.
#
# Expected: a product key memory returns a sum of the values of the best keys, with the softmax of their scores as weights (Lample et al.
# 2019, section 3.1). The option only makes values smaller, and joins the heads by a matrix, "like multi-head attention" (README).
# Seen: the weights are computed and dropped. The output is the plain sum of the topk values, however their scores differ. Queries and
# keys have no gradient, so that training never changes what is looked up. The options attn_dropout and non_competitive_gates have no
# effect. Without the option, all of this is right.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet torch==2.13.0 numpy==2.4.6
"$folder/venv/bin/pip" install --quiet --no-deps product-key-memory==0.3.0 einops==0.8.2 colt5-attention==0.11.2 local-attention==1.11.2 \
  hyper-connections==0.4.11 torch-einops-utils==0.2.0 packaging==26.4
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import numpy as np
import torch
from product_key_memory import PKM

print(f'product-key-memory {version("product-key-memory")}')
dim, heads, keys, topk, width = 5, 2, 4, 3, 6
x = torch.randn(1, 7, dim, generator=torch.Generator().manual_seed(0))


def memory(**options):
    torch.manual_seed(1)
    layer = PKM(dim, heads=heads, num_keys=keys, topk=topk, dim_head=width, **options)
    with torch.no_grad():
        layer.keys *= 5
    return layer


def by_definition(layer, weighted):
    p = {name: value.detach().numpy() for name, value in layer.named_parameters()}
    queries = (x[0].numpy() @ p['to_queries.weight'].T).reshape(-1, 2, heads, width)
    queries = (queries - queries.mean(-1, keepdims=True)) / np.sqrt(queries.var(-1, keepdims=True) + 1e-5)
    scores = np.einsum('tphd,hnpd->thpn', queries, p['keys'])
    scores = (scores[:, :, 0, :, None] + scores[:, :, 1, None, :]).reshape(-1, heads, keys**2)
    best = np.argsort(-scores, -1)[..., :topk]
    weights = np.exp(np.take_along_axis(scores, best, -1))
    weights = weights / weights.sum(-1, keepdims=True) if weighted else np.ones_like(weights)
    found = np.einsum('thk,thkd->thd', weights, p['values.weight'][best])
    combine = p.get('maybe_concat_combine.2.weight')
    return found.sum(1) if combine is None else found.reshape(len(found), -1) @ combine.T


for combine in (False, True):
    layer = memory(concat_values_and_combine=combine)
    out = layer(x)
    seen = out.detach()[0].numpy()
    right, plain = np.abs(seen - by_definition(layer, True)).max(), np.abs(seen - by_definition(layer, False)).max()
    out.square().sum().backward()
    learns = {name: p.grad is not None and bool(p.grad.any()) for name, p in layer.named_parameters()}
    print(f'concat_values_and_combine={combine}: distance of the output from the definition {right:.1e}, from a plain sum {plain:.1e}. '
          f'Have a gradient: {", ".join(name for name, known in learns.items() if known)}')  # fmt: skip
    assert learns['values.weight'] and learns['keys'] == learns['to_queries.weight'] == (not combine), 'this has changed'
    assert (right > 0.1 and plain < 1e-5) if combine else (right < 1e-5 and plain > 0.1), 'this has changed'
    gates = torch.equal(out, memory(concat_values_and_combine=combine, non_competitive_gates=True)(x))
    noise = torch.equal(out, memory(concat_values_and_combine=combine, attn_dropout=0.9)(x))
    print(f'    the same output with non_competitive_gates {gates}, with attn_dropout=0.9 in training {noise}')
    assert gates == noise == combine, 'this has changed'
PY
