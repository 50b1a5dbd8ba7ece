#!/usr/bin/env bash
# torch-geometric 2.8.1: sparse_cross_entropy takes every negative weight between -1 and 0 for -1.
#
# Expected: edge_label_weight has "support for both positive and negative weights", as a comment in the source says. "Negative
# weights scale the denominator before softmax". So a weight of -0.1 multiplies the term of its class in the denominator by 0.1.
# Seen: the logarithm of the absolute weight is clamped to at least 1e-12, not the weight before the logarithm. The logarithm
# of a weight below 1 is negative, and becomes 0. So -0.1 and -0.5 give the loss and the gradient of -1. Weights below -1 are
# right.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet torch==2.13.0 torch-geometric==2.8.1 numpy==2.4.6
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
import numpy as np
import torch
import torch_geometric
from torch_geometric.utils.cross_entropy import sparse_cross_entropy

print(f'torch-geometric {torch_geometric.__version__}')
rng = np.random.default_rng(0)
logits = rng.normal(size=(3, 5))
positive, negative = [(0, 1), (1, 4), (2, 0)], [(0, 3), (1, 2), (2, 2)]


def by_definition(logits, weight):
    terms = np.exp(logits)
    for row, column in negative:
        terms[row, column] *= abs(weight)
    return np.mean([np.log(terms[row].sum()) - np.log(terms[row, column]) for row, column in positive])


def numerical_gradient(weight, step=1e-6):
    change = np.zeros_like(logits)
    change[0, 3] = step
    return (by_definition(logits + change, weight) - by_definition(logits - change, weight)) / (2 * step)


labels = torch.tensor(positive + negative).t()
results = {}
for weight in (-4.0, -2.0, -1.0, -0.5, -0.1, -0.01):
    x = torch.tensor(logits, requires_grad=True)
    loss = sparse_cross_entropy(x, labels, torch.tensor([1.0] * 3 + [weight] * 3, dtype=torch.float64))
    loss.backward()
    seen, right = loss.item(), by_definition(logits, weight)
    slope, right_slope = x.grad[0, 3].item(), numerical_gradient(weight)
    print(f'negative weight {weight}: loss {seen:.4f}, by the definition {right:.4f}, '
          f'gradient {slope:.4f}, by the definition {right_slope:.4f}')  # fmt: skip
    results[weight] = seen
    assert np.isclose(seen, right) == (weight <= -1), 'this has changed'
    assert np.isclose(slope, right_slope, atol=1e-6) == (weight <= -1), 'this has changed'
assert np.allclose([results[-0.5], results[-0.1], results[-0.01]], results[-1.0]), 'this has changed'
PY
