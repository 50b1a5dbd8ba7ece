#!/usr/bin/env bash
# reservoirpy 0.4.2: the RLS node is not recursive least squares if it learns a bias, as it does by default.
#
# Expected: RLS is a "single layer of neurons learning connections using Recursive Least Squares algorithm", with fit_bias "if
# True, then a bias parameter will be learned along with output weights". Recursive least squares has the same weights after n
# samples as a regression on them, with a ridge of alpha.
# Seen: only the weights are in the matrix P. The bias is moved besides, by the error divided by the number of samples so far.
# Both change for the same error, and errors of early steps stay. The result is not the least squares solution, and is still
# far from it after thousands of samples. For two features with mean 1, and noise of variance 0.01, the median of the mean
# squared error after 3000 samples is above 0.2. With features of mean 0, it is nearly right. A column of ones instead of the
# bias is right.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet reservoirpy==0.4.2 numpy==2.3.5 scipy==1.17.1 joblib==1.6.0 tqdm==4.70.1
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import numpy as np
from reservoirpy.nodes import RLS

print(f'reservoirpy {version("reservoirpy")}')
rng = np.random.default_rng(0)
for mean in (0, 1, 5):
    for n in (300, 3000):
        errors = []
        for _ in range(15):
            x = rng.normal(mean, 1, (n, 2))
            y = x @ [[2.0], [-1.0]] + 3 + rng.normal(0, 0.1, (n, 1))
            ones = np.c_[x, np.ones(n)]
            right = np.linalg.solve(ones.T @ ones + 1e-6 * np.eye(3), ones.T @ y).ravel()
            node, column = RLS(alpha=1e-6), RLS(alpha=1e-6, fit_bias=False)
            node.partial_fit(x, y)
            column.partial_fit(ones, y)
            seen = np.append(node.Wout.ravel(), node.bias)
            errors.append([((ones @ weights - y[:, 0]) ** 2).mean() for weights in (seen, right)])
            assert np.allclose(column.Wout.ravel(), right, atol=1e-3) and np.abs(right - [2, -1, 3]).max() < 0.2
        middle, exact = np.median(errors, axis=0)
        print(f'mean {mean}, {n} samples: mean squared error of the node, median of 15 data sets {middle:.4f}, largest '
              f'{np.max(errors):.2f}, by least squares {exact:.4f}. Weights and bias of the last {seen.round(2)}, '
              f'by least squares {right.round(2)}')  # fmt: skip
        assert 0.009 < exact < 0.011 and (mean == 0 or (middle > 1.5 * exact and np.max(errors) > 0.5)), 'this has changed'
PY
