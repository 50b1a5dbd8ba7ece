#!/usr/bin/env bash
# torch-geometric-signed-directed 1.2.0: in_out_degree gives the out-degrees where it documents the in-degrees, and the reverse.
#
# Expected: edge_index is "the edge index from a torch geometric data", that is pairs (source, target). The result is documented as
# "in-pos, in-neg, out-pos, out-neg" with signed=True. torch_geometric.utils.degree of the targets gives the in-degrees.
# Seen: the columns are exchanged: in a star whose edges point to its center, the center has in-degree 0. Degrees from other libraries,
# or features of in- and out-neighbors, do not fit to them. The names in the code assume a matrix whose rows are the targets.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet torch==2.13.0 torch-geometric==2.8.1 torch-geometric-signed-directed==1.2.0 \
  networkx==3.6.1 numpy==2.4.6 scipy==1.17.1
cd "$folder"
"$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import torch
from torch_geometric.utils import degree
from torch_geometric_signed_directed.utils import in_out_degree

print(f'torch-geometric-signed-directed {version("torch-geometric-signed-directed")}')
edge_index = torch.tensor([[0, 1, 2], [3, 3, 3]])
right = torch.stack([degree(edge_index[1], 4), degree(edge_index[0], 4)], 1)
seen = in_out_degree(edge_index, 4)
print(f'edges 0 -> 3, 1 -> 3, 2 -> 3: in- and out-degrees {seen.tolist()} instead of {right.tolist()}')
assert torch.equal(seen, right.flip(1)), 'this has changed'

seen = in_out_degree(edge_index, 4, signed=True, edge_weight=torch.tensor([1.0, 1, -2]))
print(f'with weights 1, 1, -2, node 3: positive in, negative in, positive out, negative out {seen[3].tolist()}')
assert seen[3].tolist() == [0, 0, 2, 2], 'this has changed'
PY
