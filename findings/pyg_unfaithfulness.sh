#!/usr/bin/env bash
# torch-geometric 2.8.1: the metric unfaithfulness uses the divergence in the other direction than documented.
#
# Expected: documented as 1 - exp(-KL(y || y_hat)), with y of the original graph and y_hat of the masked one.
# Seen: it calls F.kl_div(y.log(), y_hat). This function takes the second distribution of the divergence first, in logarithms, so
# the result is 1 - exp(-KL(y_hat || y)).
# GraphXAI has the same lines: https://github.com/mims-harvard/GraphXAI/issues/70 asks about them.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet torch==2.13.0 torch-geometric==2.8.1
cd "$folder"
"$folder/venv/bin/python" - <<'PY'
import math

import torch
import torch_geometric
from torch_geometric.explain import DummyExplainer, Explainer, unfaithfulness


class Model(torch.nn.Module):
    def forward(self, x, edge_index):
        return x.softmax(-1)


def divergence(p, q):
    return sum(a * math.log(a / b) for a, b in zip(p.flatten().tolist(), q.flatten().tolist()))


print(f'torch-geometric {torch_geometric.__version__}')
x, mask = torch.tensor([[3.0, 0.0, 0.0]]), torch.tensor([[0.0, 1.0, 1.0]])
explainer = Explainer(
    Model(), DummyExplainer(), explanation_type='model', node_mask_type='attributes',
    model_config=dict(mode='multiclass_classification', task_level='node', return_type='probs'),
)  # fmt: skip
explanation = explainer(x, torch.empty(2, 0, dtype=torch.long))
explanation.node_mask = mask
seen = unfaithfulness(explainer, explanation)
y, y_hat = x.softmax(-1), (x * mask).softmax(-1)
documented, reverse = 1 - math.exp(-divergence(y, y_hat)), 1 - math.exp(-divergence(y_hat, y))
print(f'y {y.tolist()}, y_hat {y_hat.tolist()}')
print(f'unfaithfulness {seen:.4f}, from KL(y || y_hat) {documented:.4f}, from KL(y_hat || y) {reverse:.4f}')
assert abs(seen - reverse) < 1e-5 and abs(seen - documented) > 0.05, 'this has changed'
PY
