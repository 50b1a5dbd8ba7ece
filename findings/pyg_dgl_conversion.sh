#!/usr/bin/env bash
# torch-geometric 2.8.1 and dgl 1.1.3: from_dgl of a heterogeneous graph stores descriptions of the features of edges, not the features.
#
# Expected: from_dgl converts a graph to Data or HeteroData, with its nodes, edges and features, as it does for homogeneous graphs. to_dgl
# is the way back. All nodes stay, whether they have edges and features or not.
# Seen: of each feature of edges of a HeteroData, its dgl.frame.Scheme (shape and type) is stored in place of the tensor. Without features,
# the number of nodes is lost: 5 nodes become 3, or None for a type of nodes. to_dgl of a HeteroData whose last nodes have no
# edges raises "Expect number of features to match number of nodes", since it passes only the edges on.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet torch==2.13.0 torch-geometric==2.8.1 dgl==1.1.3 numpy==2.4.6 scipy==1.17.1
# dgl 1.1.3 imports setuptools.extern, which newer versions of setuptools lack, and packaging:
"$folder/venv/bin/pip" install --quiet --no-deps setuptools==70.3.0 packaging==26.4
cd "$folder"
HOME="$folder" DGLBACKEND=pytorch "$folder/venv/bin/python" -W ignore - <<'PY'
import dgl
import torch
import torch_geometric
from torch_geometric.data import HeteroData
from torch_geometric.utils import from_dgl, to_dgl

print(f'torch-geometric {torch_geometric.__version__}, dgl {dgl.__version__}')
rates = ('user', 'rates', 'item')
graph = dgl.heterograph({rates: ([0, 1], [0, 2])}, num_nodes_dict={'user': 4, 'item': 5})
graph.edges['rates'].data['stars'] = torch.tensor([4.0, 5.0])
graph.nodes['user'].data['x'] = torch.ones(4, 2)
data = from_dgl(graph)
print(f'stars of the edges: {data[rates].stars}')
print(f'number of items: {graph.num_nodes("item")} in dgl, {data["item"].num_nodes} in PyG')
single = dgl.graph(([0, 1], [1, 2]), num_nodes=5)
print(f'homogeneous graph: {single.num_nodes()} nodes in dgl, {from_dgl(single).num_nodes} in PyG')

back = HeteroData()
back['user'].x, back['item'].x = torch.ones(4, 2), torch.ones(5, 2)
back[rates].edge_index = torch.tensor([[0, 1], [0, 2]])
try:
    message = str(to_dgl(back))
except dgl.DGLError as error:
    message = str(error)
print(f'to_dgl: {message}')
assert not isinstance(data[rates].stars, torch.Tensor) and type(data[rates].stars).__name__ == 'Scheme', 'this has changed'
assert data['item'].num_nodes is None and from_dgl(single).num_nodes == 3, 'this has changed'
assert message.startswith('Expect number of features to match number of nodes'), 'this has changed'
PY
