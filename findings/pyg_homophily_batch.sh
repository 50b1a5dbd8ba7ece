#!/usr/bin/env bash
# torch-geometric 2.8.1: homophily(method="edge_insensitive") of a batch fails if its last graph has no node of the last class.
#
# Expected: batch "assigns each node to a specific example", and the result has one value per example, in any order of the examples. A
# class without nodes in an example is no error: in any example but the last, and for the other two methods, it is none.
# Seen: the ratios per class are computed for one group per example and class. Their number is taken from the largest group that has a node,
# so that groups behind it are missing, and reshaping raises "shape '[2, 2]' is invalid for input of size 3". The same two graphs in the
# other order give a result.
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
from torch_geometric.utils import homophily

print(f'torch-geometric {torch_geometric.__version__}')
edge_index = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
both, first = (Data(edge_index=edge_index, y=torch.tensor(y), num_nodes=3) for y in ([0, 1, 1], [0, 0, 0]))


def result(method, *graphs):
    batch = Batch.from_data_list(list(graphs))
    try:
        return [round(value, 4) for value in homophily(batch.edge_index, batch.y, batch.batch, method).tolist()]
    except RuntimeError as error:
        return str(error)


seen = {method: (result(method, first, both), result(method, both, first)) for method in ('edge', 'node', 'edge_insensitive')}
for method, (one, other) in seen.items():
    print(f'{method}: last graph with both classes {one}, last graph with class 0 alone: {other}')
assert all(seen[method][0] == seen[method][1][::-1] for method in ('edge', 'node')), 'this has changed'
assert len(seen['edge_insensitive'][0]) == 2 and 'is invalid for input of size 3' in seen['edge_insensitive'][1], 'this has changed'
PY
