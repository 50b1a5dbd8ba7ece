#!/usr/bin/env bash
# torch-geometric 2.8.1: the running statistics of InstanceNorm keep the computation graph of every training step.
#
# Expected: "this module tracks the running mean and variance". Statistics are numbers: no gradient flows into past batches, and memory
# does not grow with training. BatchNorm of the same package, torch.nn.InstanceNorm1d, and this layer without batch behave so.
# Seen: with batch and track_running_stats=True, the buffers are replaced by differentiable functions of all inputs so far. Their graph
# grows with every step, with the activations that it holds. copy.deepcopy of the model (averaged weights, early stopping) raises, and
# so does a gradient in eval() (explanations, adversarial examples): "backward through the graph a second time".
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet torch==2.13.0 torch-geometric==2.8.1
cd "$folder"
"$folder/venv/bin/python" -W error::UserWarning - <<'PY'
import copy

import torch
import torch_geometric
from torch_geometric.nn import BatchNorm, InstanceNorm

print(f'torch-geometric {torch_geometric.__version__}')
batch = torch.tensor([0, 0, 0, 1, 1, 1])


def operations(tensor):
    seen, stack = set(), [tensor.grad_fn]
    while stack:
        node = stack.pop()
        if node is not None and node not in seen:
            seen.add(node)
            stack += [parent for parent, _ in node.next_functions]
    return len(seen)


def train(norm, mean, *arguments):
    torch.manual_seed(0)
    linear, sizes = torch.nn.Linear(3, 3), []
    for _ in range(40):
        norm(linear(torch.randn(6, 3)), *arguments).square().sum().backward()
        sizes.append(operations(mean()))
    try:
        copy.deepcopy(norm)
        copied = 'works'
    except RuntimeError as error:
        copied = str(error)[:52]
    try:
        norm.eval()(linear(torch.randn(6, 3)), *arguments).sum().backward()
        gradient = 'works'
    except RuntimeError as error:
        gradient = str(error)[:52]
    return sizes[9::10], copied, gradient


peer, first, second = BatchNorm(3), *(InstanceNorm(3, track_running_stats=True) for _ in range(2))
seen = {
    'BatchNorm': train(peer, lambda: peer.module.running_mean),
    'InstanceNorm without batch': train(first, lambda: first.running_mean),
    'InstanceNorm with batch': train(second, lambda: second.running_mean, batch),
}
for name, (sizes, copied, gradient) in seen.items():
    print(f'{name}: operations behind running_mean after 10, 20, 30, 40 steps {sizes}, deepcopy: {copied}, gradient: {gradient}')
right = ([0, 0, 0, 0], 'works', 'works')
sizes, copied, gradient = seen.pop('InstanceNorm with batch')
assert all(result == right for result in seen.values()), 'this has changed'
assert sizes[3] - sizes[2] == sizes[1] - sizes[0] > 50, 'this has changed'
assert copied.startswith('Only Tensors created') and gradient.startswith('Trying to backward through'), 'this has changed'
PY
