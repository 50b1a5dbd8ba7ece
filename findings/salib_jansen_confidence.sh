#!/usr/bin/env bash
# SALib 1.6.0: ST_conf of sobol_jansen sums over the resamples, so that it grows with their number and is no error of ST.
#
# Expected: num_resamples is "the number of bootstrap resamples", and conf_level is "the confidence interval level". ST_conf is
# the normal quantile times the standard deviation of the total indices of bootstrap resamples of the sample sets. With more, it
# is more exact. About 95 % of ST of repeated designs are within ST_conf of their mean.
# Seen: num_vars indices are drawn for each resample, in the place of as many as there are sample sets. The estimator then sums
# over the resamples. Ten times as many resamples multiply ST_conf by about 3, and it is far too small or too large.
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
from SALib.analyze import sobol_jansen
from SALib.sample.radial.radial_mc import sample

print(f'SALib {version("SALib")}')
problem = {'num_vars': 3, 'names': ['a', 'b', 'c'], 'bounds': [[0, 1]] * 3}
sets = 200


def model(x):
    return 4 * x[:, 0] ** 2 + 2 * x[:, 1] + 0.1 * x[:, 2]


x = sample(problem, sets, seed=1)
y = model(x)
differences = y[0::4, None] - np.stack([y[i::4] for i in (1, 2, 3)], 1)
variance = y[0::4].var()
total = (differences**2).mean(0) / 2 / variance

rng = np.random.default_rng(0)
resamples = rng.integers(sets, size=(4000, sets))
right = 1.96 * ((differences[resamples] ** 2).mean(1) / 2 / variance).std(0, ddof=1)
repeated = []
for seed in range(2, 202):
    other = model(sample(problem, sets, seed=seed))
    repeated.append([((other[0::4] - other[i::4]) ** 2).mean() / 2 / other[0::4].var() for i in (1, 2, 3)])
print(f'total indices {total.round(3)}. 1.96 standard deviations: bootstrap {right.round(4)}, '
      f'of 200 repeated designs {1.96 * np.std(repeated, axis=0).round(4)}')  # fmt: skip
widths = []
for number in (100, 1000, 10_000, 100_000):
    result = sobol_jansen.analyze(problem, y, sets, num_resamples=number, seed=3)
    widths.append(result['ST_conf'])
    print(f'{number} resamples: ST {np.round(result["ST"], 3)}, ST_conf {np.round(widths[-1], 4)}')
    assert np.allclose(result['ST'], total)
assert (widths[3] > 5 * right).all() and (widths[3] > 10 * widths[0]).all(), 'this has changed'
assert np.allclose(1.96 * np.std(repeated, axis=0)[:2], right[:2], rtol=0.5)
PY
