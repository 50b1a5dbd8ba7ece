#!/usr/bin/env bash
# SALib 1.6.0: radial_sobol samples are in [0, 1] whatever the distributions of the problem, and indices are of another model.
#
# Expected: the problem is a "SALib problem specification", whose 'dists' are distributions of the inputs, such as 'norm' with
# mean and standard deviation, or 'unif' with lower and upper bounds. Samples have these distributions, as those of sobol, latin
# and others. The samples are for sobol_jansen, which estimates total indices of them.
# Seen: scale_samples returns a new array if there are 'dists', and the sampler drops it. It works without 'dists' only, when
# the array is scaled in place. The problem is even marked with sample_scaled = True. For two normal inputs, the total indices
# are 0.5 and 0.5 where 0.96 and 0.04 are right.
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
from SALib.sample import sobol
from SALib.sample.radial import radial_sobol

print(f'SALib {version("SALib")}')


def model(x):
    return x[:, 0] + x[:, 1]


for name, bounds, dists in (('uniform, without dists', [[10, 15], [20, 21]], None),
                            ('uniform, with dists', [[10, 15], [20, 21]], ['unif', 'unif']),
                            ('normal', [[10, 5], [20, 1]], ['norm', 'norm'])):  # fmt: skip
    problem = {'num_vars': 2, 'names': ['a', 'b'], 'bounds': bounds} | ({'dists': dists} if dists else {})
    x = radial_sobol.sample(dict(problem), 2048)
    total = sobol_jansen.analyze(problem, model(x), 2048, seed=1)['ST']
    other = sobol.sample(dict(problem), 1024, calc_second_order=False, seed=1)
    print(f'{name}: means {x.mean(0).round(2)}, standard deviations {x.std(0).round(2)}, total indices {total.round(3)}. '
          f'Samples of sobol: means {other.mean(0).round(2)}, {other.std(0).round(2)}')  # fmt: skip
    right = dists is None
    variance = np.array([25.0, 1.0])  # both kinds have standard deviations in the ratio 5 to 1
    assert np.allclose(other.std(0)[0] / other.std(0)[1], 5, rtol=0.05)
    assert (x.min() >= 0 and x.max() <= 1) != right, 'this has changed'
    assert np.allclose(total, variance / variance.sum() if right else 0.5, atol=0.05), 'this has changed'
PY
