#!/usr/bin/env bash
# gpytoolbox 0.3.8: metropolis_hastings leaves out the repeats of rejected candidates, so that it samples another distribution.
#
# Expected: metropolis_hastings "returns a set of samples which will asymptotically tend to being a sample a random sample of
# the unknown distribution", and "Vector of f evaluated at each row of S" (docstring). The algorithm of Metropolis and Hastings
# takes the current sample once more if the candidate is rejected.
# Seen: the result has the accepted candidates only, and no sample twice in a row. A sample that is hard to leave counts as one
# that is left at once: two states of 0.9 and 0.1 become 0.5 and 0.5, and a normal distribution becomes 13% wider with large
# steps. The first value of f is 0.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet gpytoolbox==0.3.8 numpy==2.4.6 scipy==1.17.1
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import numpy as np
from gpytoolbox import metropolis_hastings

print(f'gpytoolbox {version("gpytoolbox")}')
rng = np.random.default_rng(0)
n = 20000


def by_definition(density, propose, x, n):
    samples = [x]
    while len(samples) < n:
        candidate = propose(x)
        if rng.random() < density(candidate) / density(x):
            x = candidate
        samples.append(x)
    return np.array(samples)


for weights in ([0.9, 0.1], [0.5, 0.3, 0.2]):
    weights = np.array(weights)
    def density(x):
        return weights[int(x[0])]

    def propose(x):
        return (x + rng.integers(1, len(weights))) % len(weights)

    samples, f = metropolis_hastings(density, propose, np.array([0]), n, rng=rng)
    seen, right = (np.bincount(x[:, 0].astype(int)) / n for x in (samples, by_definition(density, propose, np.array([0]), n)))
    print(f'{weights}: shares of the samples {seen.round(3)}, with repeats {right.round(3)}. f of the first {f[0]}, by the '
          f'definition {density(samples[0])}')  # fmt: skip
    assert np.allclose(right, weights, atol=0.02) and abs(seen - weights).max() > 0.1, 'this has changed'
    assert f[0] == 0 and (np.diff(samples[:, 0]) != 0).all(), 'this has changed'

for step in (0.1, 1.0, 5.0):
    def density(x):
        return np.exp(-0.5 * x[0] ** 2)

    def propose(x):
        return x + step * rng.normal(size=1)

    seen, right = (run.std() for run in (metropolis_hastings(density, propose, np.zeros(1), n, rng=rng)[0],
                                         by_definition(density, propose, np.zeros(1), n)))  # fmt: skip
    print(f'normal distribution of deviation 1, steps of {step}: deviation {seen:.3f}, with repeats {right:.3f}')
    assert step < 5 or seen > 1.08 and abs(right - 1) < 0.06, 'this has changed'
PY
