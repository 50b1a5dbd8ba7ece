#!/usr/bin/env bash
# pytorch-ignite 0.5.5: HSIC of independent features is far from 0, as each batch is cut off at 0 before the average.
#
# Expected: "This metric computes the unbiased estimator of HSIC proposed in Song et al. (2012). The HSIC is estimated using
# Eq. (5) of the paper for each batch and the average is accumulated". So the mean over many batches of independent features is
# near 0, for all batch sizes. The documented formula has no lower limit.
# Seen: negative estimates of a batch are replaced by 0. The average is positive, and is larger the smaller the batches are.
# With 2000 batches of 8 independent samples, it is 0.005, and the mean of the formula is 0.000. So weak dependence cannot be
# told from none, and results for different batch sizes cannot be compared.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet pytorch-ignite==0.5.5 torch==2.13.0 numpy==2.4.6
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import numpy as np
import torch
from ignite.metrics import HSIC

print(f'pytorch-ignite {version("pytorch-ignite")}')
rng = np.random.default_rng(0)


def by_definition(x, y):
    def gram(z):
        k = np.exp(-((z[:, None] - z[None]) ** 2).sum(axis=-1) / 2)
        np.fill_diagonal(k, 0)
        return k

    n, k, m = len(x), gram(x), gram(y)
    return (np.trace(k @ m) + k.sum() * m.sum() / ((n - 1) * (n - 2)) - 2 / (n - 2) * (k @ m).sum()) / (n * (n - 3))


results = {}
for size in (8, 16, 64):
    batches = 16000 // size
    metric = HSIC(sigma_x=1.0, sigma_y=1.0)
    values = []
    for _ in range(batches):
        x, y = rng.normal(size=(2, size, 2))
        metric.update((torch.from_numpy(x), torch.from_numpy(y)))
        values.append(by_definition(x, y))
    seen, right = metric.compute(), np.mean(values)
    error = np.std(values) / np.sqrt(batches)
    cut = np.maximum(values, 0).mean()
    print(f'{batches} batches of {size} independent samples: HSIC {seen:.5f}, mean of the formula {right:.5f} '
          f'with a standard error of {error:.5f}, mean of the formula cut off at 0 {cut:.5f}')  # fmt: skip
    assert np.isclose(seen, cut, rtol=1e-3), 'this has changed'
    assert abs(right) < 4 * error and seen > 5 * error, 'this has changed'
    results[size] = seen
assert results[8] > results[16] > results[64], 'this has changed'

x, y = rng.normal(size=(2, 64, 2))
y = y + 2 * x
one = HSIC(sigma_x=1.0, sigma_y=1.0)
one.update((torch.from_numpy(x), torch.from_numpy(y)))
print(f'64 dependent samples: HSIC {one.compute():.5f}, formula {by_definition(x, y):.5f}')
assert np.isclose(one.compute(), by_definition(x, y), rtol=1e-3), 'this has changed'
PY
