#!/usr/bin/env bash
# torch-geometric 2.8.1: AddMetaPaths(max_sample=3) keeps seven neighbors of some nodes, and none of others.
#
# Expected: "If set, will sample at maximum max_sample neighbors within metapaths. Useful in order to tackle very dense metapath edges."
# A node with ten neighbors along the metapath keeps three of them, and memory is bounded by three edges per node and step.
# Seen: in each step, each edge is kept on its own with the probability max_sample / degree, so that three is a mean, and no maximum. Of
# 10000 nodes with ten neighbors each, a thousand have more than three at the end, and three hundred have none, so that they
# drop out of the graph of the metapath.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet torch==2.13.0 torch-geometric==2.8.1
cd "$folder"
"$folder/venv/bin/python" -W ignore::UserWarning - <<'PY'
import torch
import torch_geometric
from torch_geometric.data import HeteroData
from torch_geometric.transforms import AddMetaPaths
from torch_geometric.utils import degree

print(f'torch-geometric {torch_geometric.__version__}')
torch.manual_seed(0)
nodes, neighbors = 10_000, 10
data = HeteroData()
data['author'].num_nodes = nodes
data['paper'].num_nodes = data['venue'].num_nodes = nodes * neighbors
# Each author has ten papers, and each paper has a venue of its own:
paper = torch.arange(nodes * neighbors)
data['author', 'paper'].edge_index = torch.stack([paper // neighbors, paper])
data['paper', 'venue'].edge_index = torch.stack([paper, paper])
data = AddMetaPaths([[('author', 'paper'), ('paper', 'venue')]], max_sample=3)(data)
count = degree(data['author', 'metapath_0', 'venue'].edge_index[0], nodes, dtype=torch.long).bincount()
print(f'number of authors with 0, 1, 2, ... venues: {count.tolist()}')
print(f'{count[4:].sum()} authors have more than three venues, {count[0]} have none')
assert count[4:].sum() > 1_000 and count[0] > 100 and count.numel() > 7, 'this has changed'
PY
