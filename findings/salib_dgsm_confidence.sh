#!/usr/bin/env bash
# SALib 1.6.0: dgsm_conf is the confidence interval of vi, and not of dgsm.
#
# Expected: dgsm.analyze returns 'vi', 'vi_std', 'dgsm' and 'dgsm_conf', with num_resamples and conf_level for the confidence
# interval. dgsm is vi * (upper - lower)^2 / (variance * pi^2). So the interval has this factor too. If all outputs are
# multiplied by 10, dgsm does not change, and its interval does not either.
# Seen: the bootstrap takes vi, without the factor. dgsm_conf is 100 times larger if outputs are multiplied by 10, and
# changes with the unit of the inputs.
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
from SALib.analyze import dgsm
from SALib.sample import finite_diff

print(f'SALib {version("SALib")}')
for name, width, scale in (('as it is', 1, 3), ('outputs times 10', 1, 30), ('inputs times 1000', 1000, 3)):
    problem = {'num_vars': 2, 'names': ['a', 'b'], 'bounds': [[0, width]] * 2}
    x = finite_diff.sample(problem, 256, delta=0.001 * width)
    y = scale * ((x[:, 0] / width) ** 2 + 0.5 * np.sin(3 * x[:, 1] / width))
    result = dgsm.analyze(problem, x, y, num_resamples=2000, seed=1)
    base, rng = y[0::3], np.random.default_rng(0)
    slopes = np.stack([(y[i::3] - base) / (x[i::3, i - 1] - x[0::3, i - 1]) for i in (1, 2)], 1) ** 2
    factor = width**2 / (base.var() * np.pi**2)
    resamples = rng.integers(len(base), size=(4000, len(base)))
    spread = 1.96 * slopes[resamples].mean(1).std(0, ddof=1)  # of vi
    seen = np.array(result['dgsm_conf'])
    print(f'{name}: dgsm {np.round(result["dgsm"], 4)}, dgsm_conf {seen.round(8)}. '
          f'Bootstrap of dgsm {(factor * spread).round(4)}, of vi {spread.round(8)}')  # fmt: skip
    assert np.allclose(result['dgsm'], factor * slopes.mean(0)) and np.allclose(result['vi'], slopes.mean(0))
    assert np.allclose(seen, spread, rtol=0.15) and not np.allclose(seen, factor * spread, rtol=0.2), 'this has changed'
    both = (1.96 * (factor * slopes[resamples].mean(1)).std(0, ddof=1), factor * spread)
    assert np.allclose(*both)
PY
