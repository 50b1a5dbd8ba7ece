#!/usr/bin/env bash
# torch-geometric 2.8.1: AddRandomWalkPE of a weighted graph gives no probabilities: they exceed 1, and depend on the unit.
#
# Expected: the random walk encoding of the cited paper (Dwivedi et al. 2021) is the diagonal of the powers of A D^(-1): the
# probability that a walk is back after 1, 2, ... steps. The transform reads data.edge_weight. With weights, a step follows an
# edge with the probability of its weight divided by the sum of weights of its node. A common factor of all weights cancels.
# Seen: the entry of an edge is 1 divided by the sum of weights, without its own weight. So rows of the matrix do not sum to 1,
# and a heavy edge is as likely as a light one. Sums below 1 are raised to 1. A triangle of weights 0.1 has an encoding of 6
# at step 4. With weights of 1 all is right.
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
from torch_geometric.transforms import AddRandomWalkPE

print(f'torch-geometric {torch_geometric.__version__}')
edge_index = torch.tensor([[0, 1, 1, 2, 2, 0], [1, 0, 2, 1, 0, 2]])


def by_definition(weights, steps):
    matrix = np.zeros((3, 3))
    matrix[edge_index[0], edge_index[1]] = weights
    matrix /= matrix.sum(1, keepdims=True)
    assert np.allclose(matrix.sum(1), 1)
    return np.stack([np.linalg.matrix_power(matrix, step).diagonal() for step in range(1, steps + 1)], axis=1)


for name, weights, same in (
    ('all 1', [1.0] * 6, True),
    ('all 0.1', [0.1] * 6, False),
    ('all 3', [3.0] * 6, False),
    ('1, 5 and 2', [1.0, 1.0, 5.0, 5.0, 2.0, 2.0], False),
):
    data = Data(edge_index=edge_index, edge_weight=torch.tensor(weights), num_nodes=3)
    seen, right = AddRandomWalkPE(4)(data).random_walk_pe.numpy(), by_definition(weights, 4)
    print(f'weights {name}: node 0 after 1 to 4 steps {seen[0].round(4)}, by the definition {right[0].round(4)}')
    assert right.min() >= 0 and right.max() <= 1
    assert np.allclose(seen, right, atol=1e-6) == same, 'this has changed'
    if name == 'all 0.1':
        assert np.isclose(seen[:, 3], 6).all(), 'this has changed'
PY
