#!/usr/bin/env bash
# torch 2.13.0: the mean of a weighted mse_loss or l1_loss is not that of a weighted huber_loss, although all document the same.
#
# Expected: all three have weight, "weights for each sample", and reduction "mean: the mean of the output is taken. sum: the
# output will be summed. none: no reduction will be applied". So "mean" is the mean of the output of "none". For errors below
# delta = 1, the Huber loss is half of the squared error. This holds for "none" and "sum".
# Seen: mse_loss and l1_loss divide by the sum of weights, huber_loss by the number of elements. So with weights of 0.01, the
# mean of mse_loss is 200 times that of huber_loss in place of 2 times. If all weights are equal, they have no effect on it.
# A reviewer asked for the mean of the output: https://github.com/pytorch/pytorch/pull/132049
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet torch==2.13.0 numpy==2.4.6
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
import numpy as np
import torch
from torch.nn.functional import huber_loss, l1_loss, mse_loss

print(f'torch {torch.__version__}')
rng = np.random.default_rng(0)
x, y = rng.uniform(0, 0.9, (2, 50))
error = np.abs(x - y)
outputs = {mse_loss: error**2, l1_loss: error, huber_loss: error**2 / 2}  # of delta 1, as all errors are below 1
assert error.max() < 1
for name, weights in (('1', np.ones(50)), ('0.01', np.full(50, 0.01)), ('random', rng.uniform(0, 0.2, 50))):
    for loss, output in outputs.items():
        arguments = [torch.tensor(array) for array in (x, y)]
        results = {kind: loss(*arguments, weight=torch.tensor(weights), reduction=kind) for kind in ('none', 'sum', 'mean')}
        right = (weights * output).mean()
        print(f'weights {name}, {loss.__name__}: mean {results["mean"].item():.5f}, mean of the output {right:.5f}')
        assert np.allclose(results['none'], weights * output) and np.isclose(results['sum'], (weights * output).sum())
        seen = results['mean'].item()
        assert np.isclose(seen, right) == (name == '1' or loss is huber_loss), 'this has changed'
        assert loss is huber_loss or np.isclose(seen, (weights * output).sum() / weights.sum()), 'this has changed'
PY
