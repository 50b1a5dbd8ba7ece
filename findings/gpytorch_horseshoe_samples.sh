#!/usr/bin/env bash
# gpytorch 1.15.2: all samples of one call of HorseshoePrior.rsample share one local shrinkage, and so are normal.
#
# Expected: a sample of the horseshoe is normal with a standard deviation of the scale times its own half-Cauchy value, by
# Carvalho, Polson and Scott (2010), which is cited. So of many samples with a scale of 1, 17 % are within 0.1 of 0, and 5 % are
# beyond 10.
# Seen: the half-Cauchy value has the shape of the scale, not of the samples. With a scalar scale, rsample([100000]) is a sample
# of one normal distribution, with a random standard deviation per call. Its kurtosis is 3, and the horseshoe has heavy tails.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet gpytorch==1.15.2 linear-operator==0.6.1 torch==2.13.0 numpy==2.4.6 scipy==1.17.1 \
  scikit-learn==1.9.1 jaxtyping==0.3.11 mpmath==1.3.0
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import numpy as np
import torch
from gpytorch.priors import HorseshoePrior

print(f'gpytorch {version("gpytorch")}')
rng = np.random.default_rng(0)
n = 100_000
right = rng.normal(size=n) * np.abs(rng.standard_cauchy(size=n))
spreads = []


def describe(x):
    near, far = np.mean(np.abs(x) < 0.1), np.mean(np.abs(x) > 10)
    quartiles = np.subtract(*np.quantile(x, [0.75, 0.25])) / np.subtract(*np.quantile(x, [0.999, 0.001]))
    return near, far, quartiles


for seed in range(4):
    torch.manual_seed(seed)
    x = HorseshoePrior(1.0).rsample(torch.Size([n])).double().numpy()
    near, far, quartiles = describe(x)
    kurtosis = np.mean((x - x.mean()) ** 4) / x.var() ** 2
    spreads.append(x.std())
    print(f'call {seed}: standard deviation {x.std():.3f}, kurtosis {kurtosis:.2f}, within 0.1 {near:.3f}, beyond 10 {far:.3f}'
          f', middle half by the range of 99.8 % {quartiles:.3f}')  # fmt: skip
    assert abs(kurtosis - 3) < 0.1 and abs(quartiles - 1.349 / 6.180) < 0.01, 'this has changed'
near, far, quartiles = describe(right)
print(f'by the definition: within 0.1 {near:.3f}, beyond 10 {far:.3f}, middle half by the range of 99.8 % {quartiles:.3f}. '
      f'Normal distribution {1.349 / 6.180:.3f}')  # fmt: skip
assert quartiles < 0.02 and max(spreads) > 2 * min(spreads)
separate = torch.stack([HorseshoePrior(1.0).rsample() for _ in range(20_000)]).double().numpy()
print(f'20000 calls for one sample: within 0.1 {describe(separate)[0]:.3f}, beyond 10 {describe(separate)[1]:.3f}')
assert abs(describe(separate)[0] - near) < 0.02 and abs(describe(separate)[1] - far) < 0.02, 'this has changed'
PY
