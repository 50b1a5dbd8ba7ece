#!/usr/bin/env bash
# torch-geometric 2.8.1: AttentionExplainer gives the attention of edges to other edges if the graph has a self-loop.
#
# Expected: edge_mask has one entry per edge of edge_index, its attention coefficient. return_attention_weights=True, which returns
# the edges beside their coefficients, shows which it is.
# Seen: GATConv removes the self-loops first, and appends one for every node. The explainer takes the first E coefficients as they
# come: every edge behind a self-loop gets the value of a later edge, and the last ones the value of appended self-loops. The edge
# 0 -> 2 with a coefficient of 0.33 is explained as 0.96, which is that of 1 -> 0. There is no warning.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet torch==2.13.0 torch-geometric==2.8.1
cd "$folder"
"$folder/venv/bin/python" - <<'PY'
import torch
import torch_geometric
from torch_geometric.explain import AttentionExplainer, Explainer
from torch_geometric.nn import GATConv


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = GATConv(3, 3)

    def forward(self, x, edge_index):
        return self.conv(x, edge_index)


print(f'torch-geometric {torch_geometric.__version__}')
torch.manual_seed(0)
x, model = 3 * torch.randn(3, 3), Model()
explainer = Explainer(
    model, AttentionExplainer(), explanation_type='model', edge_mask_type='object',
    model_config=dict(mode='regression', task_level='graph', return_type='raw'),
)  # fmt: skip
seen = {}
for name, edges in (('without self-loop', [(0, 1), (0, 2), (1, 0)]), ('with self-loop', [(0, 0), (0, 1), (0, 2), (1, 0)])):
    edge_index = torch.tensor(edges).t().contiguous()
    _, (index, alpha) = model.conv(x, edge_index, return_attention_weights=True)
    right = dict(zip(map(tuple, index.t().tolist()), alpha.flatten().tolist()))
    mask = explainer(x, edge_index).edge_mask.tolist()
    seen[name] = [abs(right[edge] - value) < 1e-5 for edge, value in zip(edges, mask)]
    print(f'{name}: ' + ', '.join(f'{u} -> {v} {right[u, v]:.3f} explained as {m:.3f}' for (u, v), m in zip(edges, mask)))
assert all(seen['without self-loop']) and not any(seen['with self-loop'][1:]), 'this has changed'
PY
