#!/usr/bin/env bash
# torch-geometric 2.8.1: on a graph with self-loops, GCNConv of a sparse matrix differs from GCNConv of the same edge_index.
#
# Expected: the guide "Memory-Efficient Aggregations" passes adj.t() in place of edge_index, and asserts that both outputs are equal.
# Seen: for edge_index, a self-loop is added to the nodes that have none. For a sparse matrix of PyTorch, a further self-loop of weight 1
# is added to every node, so that a self-loop of the graph counts twice, or its weight w becomes 1 + w. GCNConv, SGConv, SSGConv,
# APPNP, MixHopConv and EGConv share this, and there is no warning. Without self-loops, all agree.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet torch==2.13.0 torch-geometric==2.8.1
cd "$folder"
"$folder/venv/bin/python" -W ignore - <<'PY'
import torch
import torch_geometric
from torch_geometric.nn import APPNP, EGConv, GCNConv, GraphConv, MixHopConv, SGConv, SSGConv
from torch_geometric.utils import to_torch_csr_tensor

print(f'torch-geometric {torch_geometric.__version__}')
torch.manual_seed(0)
x = torch.randn(3, 4)
path = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
looped = torch.cat([path, torch.tensor([[0], [0]])], dim=1)
layers = GCNConv(4, 4), SGConv(4, 4), SSGConv(4, 4, 0.1), APPNP(2, 0.1), MixHopConv(4, 4), EGConv(4, 4, num_heads=2), GraphConv(4, 4)
seen = {}
for conv in layers:
    for edge_index in (path, looped):
        adj_t = to_torch_csr_tensor(edge_index.flip(0), size=(3, 3))
        difference = (conv(x, edge_index) - conv(x, adj_t)).abs().max().item()
        seen.setdefault(type(conv).__name__, []).append(difference)
    print(f'{type(conv).__name__}: differs by {seen[type(conv).__name__][0]:.2g} without, by {difference:.2g} with a self-loop')
weight = torch.tensor([[1.0, 1.0, 0.0], [1.0, 0.0, 1.0], [0.0, 1.0, 0.0]])
conv = GCNConv(4, 4)
for name, adj in (('A + I where the diagonal is 0', weight + torch.diag(weight.diag() == 0)), ('A + I', weight + torch.eye(3))):
    scale = adj.sum(1).rsqrt()
    right = (scale.view(-1, 1) * adj * scale) @ conv.lin(x)
    found = [torch.allclose(conv(x, graph), right, atol=1e-5) for graph in (looped, to_torch_csr_tensor(looped, size=(3, 3)))]
    print(f'GCNConv with {name}: edge_index {found[0]}, sparse {found[1]}')
assert max(without for without, _ in seen.values()) < 1e-5 and seen.pop('GraphConv')[1] < 1e-5, 'this has changed'
assert min(with_loop for _, with_loop in seen.values()) > 1e-3 and found == [False, True], 'this has changed'
PY
