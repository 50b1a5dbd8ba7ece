#!/usr/bin/env bash
# torch-geometric 2.8.1: a deep copy of GraphGym's GNNEdgeHead with edge_decoding 'concat' decodes with the weights of the original.
#
# Expected: a copy of a module computes with its own parameters, as averaged models and copies for evaluation need.
#   torch.optim.swa_utils.AveragedModel(model) deep-copies the model, and updates the parameters of the copy.
# Seen: the head keeps its decoder as a lambda that holds the original head.
#   A copy whose parameters are all 0 still gives the scores of the original, and its parameters get no gradient.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet torch==2.13.0 torch-geometric==2.8.1 numpy==2.4.6 yacs==0.1.8 pytorch-lightning==2.6.6 \
    tensorboardX==2.6.5 scikit-learn==1.9.1
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'EOF'
import copy

import numpy as np
import torch
import torch_geometric
from torch.optim.swa_utils import AveragedModel
from torch_geometric.data import Data
from torch_geometric.graphgym.config import cfg, set_cfg
from torch_geometric.graphgym.models.head import GNNEdgeHead

set_cfg(cfg)
cfg.model.edge_decoding, cfg.gnn.layers_post_mp = 'concat', 1
torch.manual_seed(0)
head = GNNEdgeHead(4, 1)
x, pairs = torch.randn(5, 4), torch.tensor([[0, 1, 2], [3, 4, 0]])


def batch():
    return Data(x=x.clone(), split='train', train_edge_index=pairs, train_edge_label=torch.tensor([1, 0, 1]))


def scores(module):
    """The scores from the parameters of a head, in NumPy."""
    weight, bias = (parameter.detach().numpy() for parameter in module.parameters())
    both = np.concatenate([x.numpy()[pairs[0]], x.numpy()[pairs[1]]], axis=1)
    return both @ weight.T + bias


original, _ = head(batch())
assert np.allclose(original.detach(), scores(head), atol=1e-6)

twin = copy.deepcopy(head)
with torch.no_grad():
    for parameter in twin.parameters():
        parameter.zero_()
found, _ = twin(batch())
found.sum().backward()
gradients = [parameter.grad is not None for parameter in twin.parameters()]
averaged = AveragedModel(head)
averaged.update_parameters(head)
with torch.no_grad():
    for parameter in head.parameters():
        parameter.add_(1.0)
later, _ = averaged(batch())

print('torch-geometric', torch_geometric.__version__)
print('scores of the original ', original.detach().flatten().tolist())
print('scores of a zero copy  ', found.detach().flatten().tolist(), 'right:', scores(twin).flatten().tolist())
print('gradients of the copy  ', gradients)
print('averaged model, later  ', later.detach().flatten().tolist(), 'right:', scores(averaged.module).flatten().tolist())
assert not scores(twin).any()
assert torch.equal(found, original), 'this has changed'
assert gradients == [False, False], 'this has changed'
assert not np.allclose(later.detach(), scores(averaged.module), atol=1e-3), 'this has changed'
EOF
