#!/usr/bin/env bash
# umap-learn 0.5.12: the metric symmetric_kl depends on how often it was called, and its gradient is the one in the other point.
#
# Expected: half of the sum of the Kullback-Leibler divergences of x from y and of y from x. It depends on x and y alone. The gradient of a
# metric is the one in its first argument, as for euclidean.
# Seen: each call adds 1e-11 to all entries, divides by the sum, and writes this into x and y. An entry 0 is 1e-11 after the first call,
# more after the second, and so on, and its logarithm is part of the distance. In the pairwise distances of 60 samples with zeros, errors
# are up to several units. The graph of UMAP differs from that of the right distances. symmetric_kl_grad, for output_metric='symmetric_kl',
# gives the gradient in the second argument.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet umap-learn==0.5.12 numpy==2.4.6 scipy==1.17.1 scikit-learn==1.9.1 numba==0.68.1 llvmlite==0.50.0
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import numpy as np
from sklearn.metrics import pairwise_distances
from umap import UMAP
from umap.distances import named_distances_with_gradients, symmetric_kl

print(f'umap-learn {version("umap-learn")}')


def by_definition(x, y):
    x, y = ((v + 1e-11) / (v + 1e-11).sum() for v in (x, y))
    return ((x * np.log(x / y)).sum() + (y * np.log(y / x)).sum()) / 2


x, y = np.array([1.0, 0, 3]), np.array([2.0, 2, 1])
right = by_definition(x, y)
calls = np.array([symmetric_kl(x, y) for _ in range(100)])
print(f'right {right:.4f}, calls 1, 2, 10 and 100: {calls[[0, 1, 9, 99]].round(4)}. x and y after them: {x.round(4)}, {y.round(4)}')
assert np.isclose(calls[0], right) and (np.diff(calls) < 0).all() and right - calls[-1] > 0.9, 'this has changed'

samples = np.random.default_rng(0).poisson(2, size=(60, 6)).astype(np.float64)
samples[:, 0] += 1  # No sample is 0 everywhere.
matrix = np.array([[by_definition(a, b) for b in samples] for a in samples])
seen = pairwise_distances(samples.copy(), metric=symmetric_kl)
print(f'pairwise distances: mean {matrix.mean():.3f}, mean error {abs(seen - matrix).mean():.3f}, largest {abs(seen - matrix).max():.3f}')
assert abs(seen - matrix).max() > 1, 'this has changed'

graphs = [UMAP(n_neighbors=5, n_epochs=5, random_state=0, metric=metric).fit(data).graph_.toarray() > 0
          for metric, data in (('symmetric_kl', samples.copy()), ('precomputed', matrix))]  # fmt: skip
missing = (graphs[1] & ~graphs[0]).sum() / graphs[1].sum()
print(f'UMAP: {missing:.1%} of the edges with the right distances are missing')
assert missing > 0.02, 'this has changed'

x, y = np.array([0.2, 0.3, 0.5]), np.array([0.5, 0.3, 0.2])
gradients = {}
for name in ('symmetric_kl', 'euclidean'):
    _, gradients[name] = named_distances_with_gradients[name](x.copy(), y.copy())
first, second = (np.log(x / y) - y / x + 1) / 2, (np.log(y / x) - x / y + 1) / 2
print(f'gradient of symmetric_kl {gradients["symmetric_kl"].round(3)}, by the definition in x {first.round(3)}, in y {second.round(3)}')
assert np.allclose(gradients['symmetric_kl'], second) and not np.allclose(first, second), 'this has changed'
assert np.allclose(gradients['euclidean'], (x - y) / np.linalg.norm(x - y), atol=1e-4), 'this has changed'
PY
