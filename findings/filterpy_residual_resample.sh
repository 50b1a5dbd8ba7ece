#!/usr/bin/env bash
# filterpy 2.0.0: residual resampling never draws particles of a small weight, as the residual is made of the wrong difference.
#
# Expected: residual_resample is to "take int(N*w^i) samples of each particle i, and then resample any remaining using a
# standard resampling algorithm" (Liu and Chen 1998). The remaining draws have probabilities in proportion to N * w - floor(N *
# w). So particle i is drawn N * w_i times on average, as with any resampling.
# Seen: the residual is weights - num_copies, without N. It is negative for each particle which has a copy. After division by
# its sum, the particles which have copies get the remaining draws, and those of small weights never get one: of 4 particles
# with weights of 0.46, 0.26, 0.14 and 0.14, the last two are lost each time. The other resampling functions are right.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet filterpy==2.0.0 numpy==2.4.6 scipy==1.17.1
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import numpy as np
from filterpy.monte_carlo import multinomial_resample, residual_resample, stratified_resample, systematic_resample

print(f'filterpy {version("filterpy")}')
np.random.seed(0)
for weights in (np.array([0.46, 0.26, 0.14, 0.14]), np.array([0.3, 0.3, 0.2, 0.1, 0.1])):
    n = len(weights)
    print(f'weights {weights}: by the definition, the average numbers of draws are {(n * weights).round(2)}')
    for function in (multinomial_resample, stratified_resample, systematic_resample, residual_resample):
        drawn = np.mean([np.bincount(function(weights), minlength=n) for _ in range(20_000)], axis=0)
        print(f'  {function.__name__}: {drawn.round(2)}')
        assert np.allclose(drawn, n * weights, atol=0.03) == (function is not residual_resample), 'this has changed'
    assert drawn[-1] == drawn[-2] == 0, 'this has changed'
PY
