#!/usr/bin/env bash
# torch-geometric 2.8.1: DenseGraphConv reads a directed adjacency matrix in one direction for "add" and "mean", and in the other
# direction for "max".
#
# Expected: the option aggr chooses how messages are combined, not who sends to whom.
# Seen: on the path 0 -> 1 -> 2, node 0 receives from node 1 with aggr="add" (the matrix times x), while node 1 receives from node 0
# with aggr="max" (the transposed matrix). So a matrix that is right for one choice is silently transposed for the other one, and
# only "max" agrees with GraphConv on the matrix of to_dense_adj.
# Known for "add": https://github.com/pyg-team/pytorch_geometric/issues/2319 advises to transpose, which breaks "max".
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet torch==2.13.0 torch-geometric==2.8.1
cd "$folder"
"$folder/venv/bin/python" - <<'PY'
import torch
import torch_geometric
from torch_geometric.nn import DenseGraphConv, GraphConv
from torch_geometric.utils import to_dense_adj

print(f'torch-geometric {torch_geometric.__version__}')
x = torch.tensor([[1.0], [10.0], [100.0]])
edge_index = torch.tensor([[0, 1], [1, 2]])
adj = to_dense_adj(edge_index, max_num_nodes=3)
seen = {}
for aggr in ('add', 'mean', 'max'):
    sparse, dense = GraphConv(1, 1, aggr=aggr, bias=False), DenseGraphConv(1, 1, aggr=aggr, bias=False)
    for conv in (sparse, dense):
        torch.nn.init.ones_(conv.lin_rel.weight)
        torch.nn.init.zeros_(conv.lin_root.weight)
    seen[aggr] = dense(x, adj).flatten().tolist()
    print(f'{aggr}: GraphConv {sparse(x, edge_index).flatten().tolist()}, DenseGraphConv {seen[aggr]}')
assert seen['add'] == seen['mean'] == [10.0, 100.0, 0.0] and seen['max'] == [0.0, 1.0, 10.0], 'this has changed'
PY
