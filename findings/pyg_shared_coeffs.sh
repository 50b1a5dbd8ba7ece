#!/usr/bin/env bash
# torch-geometric 2.8.1: options of one PRBCDAttack, PGExplainer or GraphMaskExplainer change all others of the same kind.
#
# Expected: options such as with_early_stopping of an attack, and edge_size of an explainer, belong to the object they are given
# to. PRBCDAttack(model, block_size) with the same seed finds the same perturbation, whatever other attacks there are. This is
# so with GNNExplainer, which makes its own copy of the default options.
# Seen: coeffs is a dictionary of the class, and the constructor writes the given options into it. After
# PRBCDAttack(..., with_early_stopping=False), every attack is without early stopping, also earlier ones. In a comparison of
# options, the later results depend on the order. Here, the default attack finds a weaker perturbation than before.
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
from torch_geometric.contrib.nn import PRBCDAttack
from torch_geometric.explain import GNNExplainer, GraphMaskExplainer, PGExplainer
from torch_geometric.nn import GCNConv
from torch_geometric.utils import to_undirected

print(f'torch-geometric {torch_geometric.__version__}')


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = GCNConv(5, 8), GCNConv(8, 3)

    def forward(self, x, edge_index, edge_weight=None):
        return self.conv2(self.conv1(x, edge_index, edge_weight).relu(), edge_index, edge_weight)


torch.manual_seed(0)
n = 40
x, edge_index = torch.randn(n, 5), to_undirected(torch.randint(0, n, (2, 60)))
edge_index = edge_index[:, edge_index[0] != edge_index[1]]
model = Model().eval()
labels = model(x, edge_index).argmax(dim=1).detach()


def margin(edges):  # the loss prob_margin: the larger, the stronger the attack
    with torch.no_grad():
        p = model(x, edges).softmax(dim=1).numpy()
    y = labels.numpy()
    others = p.copy()
    others[np.arange(n), y] = -np.inf
    return float((others.max(axis=1) - p[np.arange(n), y]).mean())


def run(attack):
    torch.manual_seed(1)
    edges, flipped = attack.attack(x, edge_index, labels, budget=6)
    return margin(edges), sorted(map(tuple, flipped.t().tolist()))


def default():
    return PRBCDAttack(model, block_size=100, epochs=40, epochs_resampling=30, lr=100, log=False)


earlier = default()
before, again = run(earlier), run(default())
PRBCDAttack(model, block_size=100, with_early_stopping=False, max_final_samples=1)
after, old = run(default()), run(earlier)
print(f'loss without an attack {margin(edge_index):.4f}')
for name, result in (('first default attack', before), ('second default attack', again),
                     ('default attack after another one was made', after), ('the first attack again', old)):  # fmt: skip
    print(f'{name}: loss {result[0]:.4f}, right {before[0]:.4f}')
print(f'options of a default attack: {default().coeffs}')
assert before == again and after == old, 'this has changed'
assert after != before and default().coeffs['with_early_stopping'] is False, 'this has changed'

for kind, arguments in ((GNNExplainer, {}), (PGExplainer, {'epochs': 1}), (GraphMaskExplainer, {'num_layers': 1})):
    name = 'edge_size' if kind is not GraphMaskExplainer else 'node_feat_size'
    first = kind(**arguments).coeffs[name]
    kind(**arguments, **{name: 7.0})
    second = kind(**arguments).coeffs[name]
    print(f'{kind.__name__}: default {name} {first}, after another one was made with 7: {second}, right {first}')
    assert (second == 7) == (kind is not GNNExplainer), 'this has changed'
PY
