#!/usr/bin/env bash
# torch-geometric 2.8.1: LastNeighborLoader keeps old neighbors in place of the last ones if a batch has more than fit.
#
# Expected: the loader of TGN keeps the last `size` interactions of a node: insert "inserts newly encountered interactions into
# an ever-growing (undirected) temporal graph", and sorts old and new ones by e_id. The result does not depend on how the stream
# of interactions is cut into batches.
# Seen: in insert, the interactions of a node within a batch are in the order "as destination, then as source", not in that of
# time. The last `size` of this order are kept. So a node that was a source in the first interactions of a batch, and
# a destination in the later ones, keeps the first. Of batches of one interaction each, it keeps the last.
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
from torch_geometric.nn.models.tgn import LastNeighborLoader

print(f'torch-geometric {torch_geometric.__version__}')


def kept(source, target, num_nodes, size, batch_size):
    loader = LastNeighborLoader(num_nodes, size)
    for start in range(0, len(source), batch_size):
        loader.insert(torch.tensor(source[start:start + batch_size]), torch.tensor(target[start:start + batch_size]))
    return [sorted(loader(torch.tensor([node]))[2].tolist()) for node in range(num_nodes)]


def by_definition(source, target, num_nodes, size):
    pairs = list(zip(source, target))
    return [[event for event, pair in enumerate(pairs) if node in pair][-size:] for node in range(num_nodes)]


source, target = [0, 0, 0, 4, 5, 6], [1, 2, 3, 0, 0, 0]
right = by_definition(source, target, 7, 3)[0]
whole, single = (kept(source, target, 7, 3, batch_size)[0] for batch_size in (6, 1))
print(f'node 0, size 3: kept of one batch {whole}, of batches of one {single}, the last three {right}')
assert right == single == [3, 4, 5] and whole == [0, 1, 2], 'this has changed'

rng = np.random.default_rng(0)
source = rng.integers(0, 20, 600)
target = (source + rng.integers(1, 20, 600)) % 20
right = by_definition(source, target, 20, 10)
for batch_size in (1, 200):
    wrong = sum(a != b for a, b in zip(kept(source, target, 20, 10, batch_size), right))
    print(f'600 random interactions of 20 nodes, size 10, batches of {batch_size}: {wrong} nodes do not have their last 10')
    assert (wrong > 10) if batch_size == 200 else (wrong == 0), 'this has changed'
PY
