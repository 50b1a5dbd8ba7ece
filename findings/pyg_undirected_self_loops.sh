#!/usr/bin/env bash
# torch-geometric 2.8.1: dropout_edge(force_undirected=True) and RandomLinkSplit(is_undirected=True) double every self-loop.
#
# Expected: with force_undirected, dropout_edge "will either drop or keep both edges of an undirected edge". The edges that are
# kept are a subset of the given ones. The edges of the splits of RandomLinkSplit are a subset of those of the graph as well.
# Seen: both keep the edges from lower to higher nodes and the self-loops, and append the reversed edges. The reverse of a
# self-loop is the same one, which is now there twice. At p = 0.001, nearly no edge is dropped, and a sum over the
# neighbors of node 0 counts its own feature twice. In training, the graph is another one than in evaluation.
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
from torch_geometric.nn import SimpleConv
from torch_geometric.transforms import RandomLinkSplit
from torch_geometric.utils import dropout_edge

print(f'torch-geometric {torch_geometric.__version__}')
torch.manual_seed(0)
edge_index = torch.tensor([[0, 1, 1, 2, 2, 3, 0, 1, 2, 3], [1, 0, 2, 1, 3, 2, 0, 1, 2, 3]])
x = torch.tensor([[1.0], [10.0], [100.0], [1000.0]])


def matrix(edges, n=4):
    counts = np.zeros((n, n), dtype=int)
    np.add.at(counts, (edges[0].numpy(), edges[1].numpy()), 1)
    return counts


given = matrix(edge_index)
dropped, _ = dropout_edge(edge_index, p=0.001, force_undirected=True)
directed, _ = dropout_edge(edge_index, p=0.001)
train, _, _ = RandomLinkSplit(num_val=0.0, num_test=0.0, is_undirected=True)(Data(x=x, edge_index=edge_index))
right = given.T @ x.numpy()
for name, edges in (('dropout_edge, force_undirected=False', directed), ('dropout_edge, force_undirected=True', dropped),
                    ('RandomLinkSplit, is_undirected=True', train.edge_index)):  # fmt: skip
    counts, sums = matrix(edges), SimpleConv('sum')(x, edges)
    print(f'{name}: {counts.sum()} edges of {given.sum()}, self-loops per node {np.diag(counts)}, right {np.diag(given)}, '
          f'sums {sums.flatten().tolist()}, right {right.ravel().tolist()}')  # fmt: skip
    twice = 'force_undirected=False' not in name
    assert np.array_equal(counts, given + np.diag([1] * 4) * twice), 'this has changed'
    assert np.allclose(sums, right) != twice, 'this has changed'
PY
