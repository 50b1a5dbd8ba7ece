#!/usr/bin/env bash
# torch-geometric 2.8.1: total_influence(average=False) has the nodes in an unknown random order, and ignores normalize.
#
# Expected: with average=False, total_influence returns "the full influence matrix of shape [N, k+1]". Its helper says that the
# "i-th row contains the per-hop influences of node i". num_samples=None means that "all nodes are used". normalize=True, the
# default, is "normalize each hop-wise influence by the influence of hop 0", so that the first column is 1.
# Seen: the nodes are visited in the order of torch.randperm, also if all are used, and the rows stay in this order. It is not
# returned, so that no row can be given to its node, and two calls differ. normalize has no effect with average=False. The
# averages over all nodes are right.
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
from torch_geometric.data import Data
from torch_geometric.nn import GraphConv
from torch_geometric.utils import to_undirected, total_influence

print(f'torch-geometric {torch_geometric.__version__}')
torch.manual_seed(0)
edge_index = to_undirected(torch.tensor([[0, 0, 0, 0, 1, 2], [1, 2, 3, 4, 2, 5]]))
data, model = Data(x=torch.randn(6, 3), edge_index=edge_index), GraphConv(3, 2)

# The output of node i is its features times a matrix, and the sum of those of its neighbors times another one.
own, neighbor = (abs(lin.weight.detach().numpy()).sum() for lin in (model.lin_root, model.lin_rel))
degrees = np.bincount(edge_index[1].numpy(), minlength=6)
right = np.stack([np.full(6, own), degrees * neighbor], axis=1)

calls = [total_influence(model, data, max_hops=1, average=False)[0].numpy() for _ in range(2)]
print(f'influence of hop 1: node by node {right[:, 1].round(3)}, with average=False {calls[0][:, 1].round(3)}, '
      f'in a second call {calls[1][:, 1].round(3)}')  # fmt: skip
assert all(np.allclose(np.sort(call[:, 1]), np.sort(right[:, 1])) for call in calls)
assert not any(np.allclose(call, right) for call in calls) and not np.allclose(*calls), 'this has changed'

print(f'influence of hop 0 with normalize=True: 1 is right, with average=False {calls[0][:, 0].round(3)}')
assert np.allclose(calls[0][:, 0], own) and abs(own - 1) > 0.1, 'this has changed'

average = total_influence(model, data, max_hops=1)[0].numpy()
print(f'average over nodes, normalized: {average.round(4)}, by definition {(right.mean(0) / right.mean(0)[0]).round(4)}')
assert np.allclose(average, right.mean(0) / right.mean(0)[0]), 'this has changed'
PY
