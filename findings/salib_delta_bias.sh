#!/usr/bin/env bash
# SALib 1.6.0: the bias reduction of the delta index doubles the bias, as its estimate is of a resample and not of the data.
#
# Expected: bias_reduced_delta is the "Plischke et al. 2013 bias reduction technique (eqn 30)". There, it is twice the estimate
# of the data minus the mean of the estimates of bootstrap resamples, as a resample has about the bias of the data once more. An
# input without influence has a true delta of 0.
# Seen: the estimate, which is doubled, is of one random resample. So the bias of a resample stays, which is larger than that of
# the data without reduction. The result of an input without influence is 0.09, with 0.06 before and 0.03 after the reduction of
# the equation. It varies with the seed twice as much as between data sets.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet SALib==1.6.0 numpy==2.4.6 scipy==1.17.1 pandas==3.1.1 \
    matplotlib==3.11.2 multiprocess==0.70.19
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import numpy as np
from SALib.analyze import delta
from scipy.stats import gaussian_kde

print(f'SALib {version("SALib")}')
problem = {'num_vars': 2, 'names': ['influence', 'none'], 'bounds': [[0, 1]] * 2}
size = 300


def estimate(y, x, grid, limits):  # equation 26: mean half distance of the densities of y with and without x in a class
    rank, total = x.argsort().argsort() + 1, 0.0
    density = gaussian_kde(y, bw_method='silverman')(grid)
    for low, high in zip(limits, limits[1:]):
        inside = y[(rank > low) & (rank <= high)]
        difference = np.abs(density - gaussian_kde(inside, bw_method='silverman')(grid))
        total += len(inside) / size / 2 * np.trapezoid(difference, grid)
    return total


limits = np.linspace(0, size, int(np.ceil(size ** (2 / (7 + np.tanh((1500 - size) / 500))))) + 1)
rows = []
for seed in range(1, 13):
    rng = np.random.default_rng(seed)
    x = rng.random((size, 2))
    y = x[:, 0] ** 2 + 0.3 * rng.normal(size=size)
    result = delta.analyze(problem, x, y, num_resamples=20, seed=seed, method='delta', bins_specs={'influence': 5, 'none': 5})
    grid = np.linspace(y.min(), y.max(), 100)
    for i in range(2):
        plain = estimate(y, x[:, i], grid, limits)
        resamples = [estimate(y[k], x[k, i], grid, limits) for k in rng.integers(size, size=(20, size))]
        rows.append((result['delta_raw'][i], plain, np.mean(resamples), 2 * plain - np.mean(resamples)))
rows = np.array(rows).reshape(-1, 2, 4)
for i, name in enumerate(problem['names']):
    seen, plain, resampled, right = rows[:, i].mean(0)
    print(f'{name}: delta_raw {seen:.3f}, estimate of the data {plain:.3f}, of resamples {resampled:.3f}, '
          f'by equation 30 {right:.3f}. Standard deviations {rows[:, i].std(0)[[0, 3]].round(3)}')  # fmt: skip
seen, plain, resampled, right = rows[:, 1].mean(0)  # the true value is 0
assert abs(seen - resampled) < 0.015 and seen > plain + 0.015, 'this has changed'
assert right < plain - 0.015 < resampled - 0.03
PY
