#!/usr/bin/env bash
# torch-geometric 2.8.1: precompute_GPSE gives the graphs of a shuffled data set the encodings of other graphs.
#
# Expected: "Precomputes GPSE encodings in-place for a given dataset". Each graph gets an encoding of each of its nodes in
# pestat_GPSE. With use_vn=False, no virtual nodes are appended, and all nodes have random features as inputs.
# Seen: encodings are computed in the order of the given data set, such as dataset.shuffle() or dataset[4:], and are stored in
# graphs of the whole data set from the first one on. So a graph of 3 nodes has encodings of 8 nodes, or of other 3 nodes. Also
# use_vn is not passed on. With use_vn=False, the input of the last real node of each graph is set to 0, as if it were virtual.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet torch==2.13.0 torch-geometric==2.8.1 numpy==2.4.6
cd "$folder"
OMP_NUM_THREADS=1 TQDM_DISABLE=1 "$folder/venv/bin/python" -W ignore - <<'PY'
import numpy as np
import torch
import torch_geometric
from torch_geometric.data import Data, InMemoryDataset
from torch_geometric.nn import GPSE
from torch_geometric.nn.models.gpse import IdentityHead, precompute_GPSE

print(f'torch-geometric {torch_geometric.__version__}')
sizes = [3, 4, 5, 6, 7, 8]


class Cycles(InMemoryDataset):
    def __init__(self):
        super().__init__()
        graphs = []
        for n in sizes:
            a = torch.arange(n)
            edges = torch.stack([torch.cat([a, (a + 1) % n]), torch.cat([(a + 1) % n, a])])
            graphs.append(Data(edge_index=edges, num_nodes=n, x=torch.ones(n, 1), y=torch.zeros(1)))
        self.data, self.slices = self.collate(graphs)


torch.manual_seed(0)
np.random.seed(0)
model = GPSE(dim_in=6, dim_out=5, dim_inner=8, layers_mp=2).eval()
model.post_mp = IdentityHead()  # as in from_pretrained
for name, indices in (('as it is', [0, 1, 2, 3, 4, 5]), ('in another order', [5, 0, 4, 1, 3, 2]), ('a part', [3, 4, 5])):
    dataset = Cycles()
    dataset = dataset[torch.tensor(indices)] if name != 'as it is' else dataset
    before = [graph.num_nodes for graph in dataset]
    precompute_GPSE(model, dataset, batch_size=2)
    after = [(graph.num_nodes, len(graph.pestat_GPSE)) for graph in dataset]
    print(f'data set {name}: nodes {before}. After: nodes and encoded nodes {after}, right {[(n, n) for n in before]}')
    assert before == [sizes[k] for k in indices]
    assert (after == [(n, n) for n in before]) == (name == 'as it is'), 'this has changed'
    assert after == list(zip(sizes, before)), 'this has changed'

zero = []
hook = model.register_forward_pre_hook(lambda module, inputs: zero.extend(
    (inputs[0].x[inputs[0].batch == k] == 0).all(1).tolist() for k in range(inputs[0].num_graphs)))  # fmt: skip
precompute_GPSE(model, Cycles(), use_vn=False)
hook.remove()
print(f'use_vn=False: nodes with an input of zeros {[sum(rows) for rows in zero]} in graphs of {[len(rows) for rows in zero]}, '
      f'right {[0] * 6}')  # fmt: skip
assert [len(rows) for rows in zero] == sizes, 'this has changed'
assert all(rows[-1] and sum(rows) == 1 for rows in zero), 'this has changed'
PY
