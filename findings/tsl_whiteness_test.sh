#!/usr/bin/env bash
# torch-spatiotemporal 0.9.5: the more features a signal has, the less correlation over time az_whiteness_test(multivariate=True) finds.
#
# Expected: one test on "edge statistic: sign( (xu * xv).sum() )", divided by its standard deviation under white noise. So a copy of a
# feature changes no sign, and nothing else. lamb=1 tests edges of the graph alone, lamb=0 edges over time alone.
# Seen: each edge over time has one sign, but the variance counts it once for each feature. On the edges of the graph, it is counted once.
# So the statistic is too small by the square root of the number of features: residuals that are clearly correlated over time
# (p < 1e-8) pass as white noise with 16 features. And remove_median=True subtracts the median from the caller's array too, so that
# the error of these residuals is another one afterwards. The script replaces torch_sparse, which is not used here, by an empty module.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet torch==2.13.0 numpy==2.4.6 scipy==1.17.1 pandas==2.3.3 pyyaml==6.0.3 tqdm==4.70.1
"$folder/venv/bin/pip" install --quiet --no-deps torch-spatiotemporal==0.9.5
cd "$folder"
"$folder/venv/bin/python" - <<'PY'
import sys
from types import ModuleType

import numpy as np

sys.modules['torch_sparse'] = ModuleType('torch_sparse')
sys.modules['torch_sparse'].SparseTensor = object
import tsl
from tsl.ops.az_test import az_whiteness_test

print(f'torch-spatiotemporal {tsl.__version__}')
rng = np.random.default_rng(0)
x = rng.normal(size=(300, 5, 1))
x[1:] += 0.3 * x[:-1]  # Each node is correlated with itself one step ago.
edge_index = np.array([[0, 1, 2, 3], [1, 2, 3, 4]])
in_time = np.sign(x[1:] * x[:-1]).sum() / np.sqrt(x[1:].size)  # The sum of signs, divided by its standard deviation.
in_space = np.sign(x[:, edge_index[0]] * x[:, edge_index[1]]).sum() / np.sqrt(x[:, edge_index[0]].size)
for features in (1, 4, 16):
    copies = np.repeat(x, features, axis=2)
    time, space = (az_whiteness_test(copies, edge_index, lamb=lamb, multivariate=True) for lamb in (0.0, 1.0))
    print(f'{features} equal features: over time {time.statistic:.3f} (p = {time.pvalue:.2g}), on the graph {space.statistic:.3f}')
    assert abs(time.statistic - in_time / features**0.5) < 1e-9 and abs(space.statistic - in_space) < 1e-9, 'this has changed'
print(f'by the signs: over time {in_time:.3f}, on the graph {in_space:.3f}')

residuals = x + 1
before = np.abs(residuals).mean()
az_whiteness_test(residuals, edge_index, remove_median=True)
print(f'mean absolute error of the residuals: before the test {before:.3f}, after it {np.abs(residuals).mean():.3f}')
assert np.abs(residuals).mean() < before - 0.1, 'this has changed'
PY
