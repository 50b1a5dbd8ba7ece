#!/usr/bin/env bash
# torch-geometric 2.8.1: ClusterPooling(edge_score_method="log_softmax") never joins two nodes.
#
# Expected: threshold is documented: "if set to None, will be automatically inferred depending on edge_score_method". A pooling layer
# with its default threshold makes a graph smaller, as "tanh" and "sigmoid" do.
# Seen: the inferred threshold for "log_softmax" is 0, and edges with a higher score are contracted. The logarithm of a probability is
# never above 0, so no weights and no input contract an edge. With a threshold of one's own, the softmax runs over all edges of the
# batch: a graph is pooled to another number of nodes alone than beside copies of itself.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet torch==2.13.0 torch-geometric==2.8.1 scipy==1.17.1
cd "$folder"
"$folder/venv/bin/python" -W error::UserWarning - <<'PY'
import torch
import torch_geometric
from torch_geometric.data import Batch, Data
from torch_geometric.nn import ClusterPooling
from torch_geometric.utils import erdos_renyi_graph

print(f'torch-geometric {torch_geometric.__version__}')


def sizes(method, threshold=None, copies=1):
    result = []
    for seed in range(50):
        torch.manual_seed(seed)
        pool = ClusterPooling(4, edge_score_method=method, threshold=threshold)
        graph = Data(x=torch.randn(30, 4), edge_index=erdos_renyi_graph(30, 0.1))
        batch = Batch.from_data_list([graph] * copies)
        result.append(int((pool(batch.x, batch.edge_index, batch.batch)[2] == 0).sum()))
    return result


seen = {}
for method in ('tanh', 'sigmoid', 'log_softmax'):
    seen[method] = sizes(method)
    print(f'{method}: 30 nodes become {min(seen[method])} to {max(seen[method])} in 50 trials')
alone, beside = sizes('log_softmax', -4.0), sizes('log_softmax', -4.0, copies=4)
print(f'log_softmax, threshold=-4: mean number of nodes {sum(alone) / 50:.1f} alone, {sum(beside) / 50:.1f} beside three copies')
assert max(seen['tanh']) < 30 and max(seen['sigmoid']) < 30 and set(seen['log_softmax']) == {30}, 'this has changed'
assert sum(beside) / 50 > sum(alone) / 50 + 5, 'this has changed'
PY
