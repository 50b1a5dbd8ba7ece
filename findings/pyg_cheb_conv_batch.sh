#!/usr/bin/env bash
# torch-geometric 2.8.1: the output of ChebConv(normalization=None) for a graph depends on the other graphs in its batch.
#
# Expected: batch is an argument of the layer, so that each graph has its own largest eigenvalue. A graph has the same output alone and
# in a batch.
# Seen: without lambda_max, its bound is twice the largest degree of the whole batch, and batch is not used. A star of 50 leaves in the
# batch scales the Laplacian of a path of three nodes by 1/50 instead of 1/2. With lambda_max, one value per graph, it is right.
# The bound comes from https://github.com/pyg-team/pytorch_geometric/pull/4106
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet torch==2.13.0 torch-geometric==2.8.1
cd "$folder"
"$folder/venv/bin/python" - <<'PY'
import torch
import torch_geometric
from torch_geometric.data import Batch, Data
from torch_geometric.nn import ChebConv
from torch_geometric.utils import to_undirected

print(f'torch-geometric {torch_geometric.__version__}')
torch.manual_seed(0)
x = torch.randn(3, 2)
path = Data(x=x, edge_index=to_undirected(torch.tensor([[0, 1], [1, 2]])))
seen = {}
for leaves in (2, 10, 50):
    star = to_undirected(torch.stack([torch.zeros(leaves, dtype=torch.long), torch.arange(1, leaves + 1)]))
    batch = Batch.from_data_list([path, Data(x=torch.randn(leaves + 1, 2), edge_index=star)])
    for kind in (None, 'sym'):
        conv = ChebConv(2, 2, K=3, normalization=kind)
        alone = conv(x, path.edge_index, batch=torch.zeros(3, dtype=torch.long))
        both = conv(batch.x, batch.edge_index, batch=batch.batch)[:3]
        own = torch.tensor([4.0, 2.0 * leaves]) if kind is None else torch.tensor([2.0, 2.0])
        told = conv(batch.x, batch.edge_index, batch=batch.batch, lambda_max=own)[:3]
        seen[kind, leaves] = [(both - alone).abs().max().item(), (told - alone).abs().max().item()]
        differs, with_bound = seen[kind, leaves]
        print(f'{kind}, beside a star of {leaves} leaves: differs by {differs:.2g}, with lambda_max by {with_bound:.2g}')
assert seen[None, 10][0] > 0.05 and seen[None, 50][0] > 0.05, 'this has changed'
right = [b for _, b in seen.values()] + [a for (kind, leaves), (a, _) in seen.items() if kind or leaves == 2]
assert max(right) < 1e-5, 'this has changed'
PY
