#!/usr/bin/env bash
# torch-geometric 2.8.1: TopKPooling, SAGPooling and ASAPooling with ratio=1.0 keep one node per graph, not all.
#
# Expected: ratio "is used to compute k = ceil(ratio * N), or the value of k itself, depending on whether the type of ratio is
# float or int". So ratio=1.0 keeps all N nodes, and ratio=1 keeps one.
# Seen: the code tests if ratio is at least 1, not its type. With ratio=1.0, a single node of each graph is left, and with 0.999
# all nodes. In a search over ratios up to 1.0, the case without pooling is the one with the most of it.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet torch==2.13.0 torch-geometric==2.8.1 numpy==2.4.6
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
import math

import numpy as np
import torch
import torch_geometric
from torch_geometric.nn import ASAPooling, SAGPooling, TopKPooling

print(f'torch-geometric {torch_geometric.__version__}')
torch.manual_seed(0)
sizes, edges, start = [4, 7, 10], [], 0
for size in sizes:  # cycles
    a = torch.arange(size)
    edges.append(torch.stack([torch.cat([a, (a + 1) % size]), torch.cat([(a + 1) % size, a])]) + start)
    start += size
edge_index = torch.cat(edges, dim=1)
batch = torch.repeat_interleave(torch.arange(3), torch.tensor(sizes))
x = torch.randn(start, 4)
for ratio in (0.5, 0.9, 0.999, 1.0, 1, 2):
    right = [math.ceil(ratio * size) if isinstance(ratio, float) else ratio for size in sizes]
    for kind in (TopKPooling, SAGPooling, ASAPooling):
        pool = kind(4, ratio=ratio)
        result = pool(x, edge_index, batch=batch)
        pooled_batch = result[3]
        seen = np.bincount(pooled_batch.numpy(), minlength=3).tolist()
        print(f'{kind.__name__}, ratio {ratio}: nodes per graph {seen}, by the documentation {right} of {sizes}')
        wrong = isinstance(ratio, float) and ratio == 1
        assert (seen == right) != wrong and (seen == [1, 1, 1] or not wrong), 'this has changed'
PY
