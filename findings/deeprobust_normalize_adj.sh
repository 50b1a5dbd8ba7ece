#!/usr/bin/env bash
# deeprobust 0.2.11: a loop at the first node takes the self-loops of all other nodes from the normalized adjacency matrix.
#
# Expected: normalize_adj, "A' = (D + I)^-1/2 * ( A + I ) * (D + I)^-1/2" (docstring). It does not depend on the order of the nodes. A
# sparse adjacency matrix has the same result as a dense one in normalize_adj_tensor.
# Seen: deeprobust/graph/utils.py adds the identity only if the entry [0, 0] is zero, as a sign that there are no loops yet. So a graph
# with one loop, at its first node, gets no self-loops at all. With the nodes in another order, all get them. For dense tensors the
# identity is always added. The GCN of the package normalizes sparse graphs by this function. degree_normalize_adj is the same.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet torch==2.13.0 numpy==1.26.4 scipy==1.13.1 scikit-learn==1.7.2
"$folder/venv/bin/pip" install --quiet --no-deps deeprobust==0.2.11
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import numpy as np
import torch
from deeprobust.graph.utils import degree_normalize_adj_tensor, normalize_adj_tensor
from scipy.sparse import csr_matrix

print(f'deeprobust {version("deeprobust")}')
path = np.array([[1, 1, 0], [1, 0, 1], [0, 1, 0]], dtype=float)  # 0 - 1 - 2, with a loop at 0.


def sparse(matrix):
    coo = csr_matrix(matrix).tocoo()
    return torch.sparse_coo_tensor(np.stack([coo.row, coo.col]), coo.data, coo.shape)


for function, power in ((normalize_adj_tensor, 0.5), (degree_normalize_adj_tensor, 1)):
    results = {}
    for order in ([0, 1, 2], [1, 0, 2]):
        matrix, back = path[np.ix_(order, order)], np.argsort(order)
        degree = (matrix + np.eye(3)).sum(1)
        right = (matrix + np.eye(3)) / (degree[:, None] ** power * degree[None] ** (1 - power))
        seen = function(sparse(matrix), sparse=True).to_dense().numpy()
        dense = function(torch.tensor(matrix), sparse=False).numpy()
        results[order[0]] = seen[np.ix_(back, back)]
        print(f'{function.__name__}, order {order}, back in the order [0, 1, 2]: sparse {seen[np.ix_(back, back)].round(3).tolist()}, '
              f'dense {dense[np.ix_(back, back)].round(3).tolist()}')  # fmt: skip
        assert np.allclose(dense, right, atol=1e-6) and np.allclose(seen, right, atol=1e-6) == (order[0] == 1), 'this has changed'
    assert results[0][1, 1] == results[0][2, 2] == 0 and results[1].diagonal().min() > 0.3, 'this has changed'
PY
