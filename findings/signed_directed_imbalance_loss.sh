#!/usr/bin/env bash
# torch-geometric-signed-directed 1.2.0: Prob_Imbalance_Loss has no gradient with threshold="naive" or "std".
#
# Expected: it is a loss to be minimized, and threshold is documented with three choices: "sort" (the default), "std" and "naive".
# Seen: for "naive" and "std", the terms are copied to a new tensor, which cuts the gradient. Since the result is subtracted from a 1 that
# requires a gradient, backward() raises nothing: the clustering just never learns, with a loss that looks plausible. "naive" is
# documented as "suming up all K*(K-1)/2 terms", but takes their mean. With "sort", the gradient is right.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet torch==2.13.0 torch-geometric==2.8.1 torch-geometric-signed-directed==1.2.0 \
  networkx==3.6.1 numpy==2.4.6 scipy==1.17.1
cd "$folder"
"$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import torch
from torch_geometric_signed_directed.utils import Prob_Imbalance_Loss

print(f'torch-geometric-signed-directed {version("torch-geometric-signed-directed")}')
torch.manual_seed(0)
flow = torch.tensor([[0.0, 3, 0, 1], [0, 0, 2, 0], [1, 0, 0, 4], [2, 0, 1, 0]])
start = torch.randn(4, 3)
steps = {}
for threshold in ('sort', 'naive', 'std'):
    logits = start.clone().requires_grad_()
    loss = Prob_Imbalance_Loss(3)(logits.softmax(1), flow, 3, threshold=threshold)
    loss.backward()
    # A derivative by differences, in the first entry:
    step = torch.zeros_like(start)
    step[0, 0] = 1e-2
    values = [Prob_Imbalance_Loss(3)((start + sign * step).softmax(1), flow, 3, threshold=threshold).item() for sign in (1, -1)]
    difference = (values[0] - values[1]) / 2e-2
    steps[threshold] = None if logits.grad is None else logits.grad[0, 0].item()
    print(f'{threshold}: loss {loss.item():.4f}, gradient {steps[threshold]}, by differences {difference:.4f}')
    assert abs(difference) > 1e-3, 'the loss is flat'
    assert threshold != 'sort' or abs(steps[threshold] - difference) < 1e-3, 'this has changed'
assert steps['naive'] is None and steps['std'] is None, 'this has changed'
PY
