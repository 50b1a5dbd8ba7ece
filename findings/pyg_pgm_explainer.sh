#!/usr/bin/env bash
# torch-geometric 2.8.1: PGMExplainer of a graph tests each node against the node of the label's number, not the prediction.
#
# Expected: pgm_stats are "the p-values of each node as calculated by the Chi-squared test", for "the significance of nodes to
# the prediction". In the paper, the nodes of the explanation are those which the prediction depends on. feature_index are "the
# indices of the perturbed features".
# Seen: samples have a column per node, and a last one, which tells if the prediction changed. The first round compares each
# node with the column of the number of the class, which is the random perturbation of a node. So the nodes for the second
# round are arbitrary. The only node that the model reads is left out, with a p-value of 1. The test against the last column
# finds it. With the default perturbation_mode "randint", all features of a node are perturbed, also with feature_index=[0].
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet torch==2.13.0 torch-geometric==2.8.1 numpy==2.4.6 scipy==1.17.1 pandas==3.1.1 \
  pgmpy==0.1.26 networkx==3.6.1 scikit-learn==1.9.1 statsmodels==0.15.0
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
import numpy as np
import torch
import torch_geometric
from scipy.stats import chi2_contingency
from torch_geometric.contrib.explain import PGMExplainer
from torch_geometric.explain import Explainer
from torch_geometric.nn import SimpleConv

print(f'torch-geometric {torch_geometric.__version__}')
n, read, label = 40, 17, 1
inputs = []


class Model(torch.nn.Module):  # the classes depend on feature 0 of one node
    def __init__(self):
        super().__init__()
        self.conv = SimpleConv()

    def forward(self, x, edge_index):
        inputs.append(x.clone().numpy())
        z = self.conv(x, edge_index)[:, 0] if self.node_level else 3 * x[[read], 0]
        return torch.stack([-z, z], dim=-1)


def explainer(level, **options):
    return Explainer(model, PGMExplainer(**options), explanation_type='phenomenon', node_mask_type='attributes',
                     model_config={'mode': 'multiclass_classification', 'task_level': level, 'return_type': 'raw'})  # fmt: skip


model = Model()
model.node_level = False
x = torch.full((n, 2), 0.5)
x[read] = 3
a = torch.arange(n)
edge_index = torch.stack([a, (a + 1) % n])
for seed in range(2):
    torch.manual_seed(seed)
    np.random.seed(seed)
    inputs.clear()
    result = explainer('graph', max_subgraph_size=3)(x, edge_index, target=torch.tensor([label]))
    nodes = result.node_mask[:, 0].nonzero().flatten().tolist()
    # The first 100 perturbed inputs are those of the first round.
    samples = np.array([sample for sample in inputs if (sample != x.numpy()).any()][:100])
    moved = (samples != x.numpy()).any(axis=2)
    probability = 1 / (1 + np.exp(-6 * samples[:, read, 0]))
    changed = np.zeros(100, dtype=bool)
    changed[np.argsort(probability, kind='stable')[:100 // 8]] = True  # those of the largest change, as in the source
    tables = [[[np.sum(m & changed), np.sum(m & ~changed)], [np.sum(~m & changed), np.sum(~m & ~changed)]] for m in moved.T]
    p = [chi2_contingency(table)[1] for table in tables]
    print(f'seed {seed}: nodes of the explanation {nodes}, p-value of node {read} {result.pgm_stats[read]:.4f}. '
          f'Against the prediction: smallest p-value of node {int(np.argmin(p))}, {min(p):.4f}')  # fmt: skip
    assert read not in nodes and result.pgm_stats[read] > 0.99, 'this has changed'
    assert np.argmin(p) == read and p[read] < 0.01

model.node_level = True
for mode in ('randint', 'zero'):
    inputs.clear()
    target = torch.ones(n, dtype=torch.long)
    explainer('node', feature_index=[0], perturbation_mode=mode)(x, edge_index, target=target, index=3)
    changes = np.array([(sample != x.numpy()).any(axis=0) for sample in inputs]).any(axis=0)
    print(f'feature_index=[0], {mode}: features which are perturbed {np.flatnonzero(changes).tolist()}, right [0]')
    assert np.flatnonzero(changes).tolist() == ([0, 1] if mode == 'randint' else [0]), 'this has changed'
PY
