#!/usr/bin/env bash
# hmmlearn 0.3.3: aic and bic of GMMHMM count the mixture weights of one state only.
#
# Expected: bic is -2 log L + k log n, with the number k of free parameters. weights_ of GMMHMM has the shape (n_components,
# n_mix). Each row sums to 1, so that there are n_components (n_mix - 1) free weights.
# Seen: n_mix - 1 of them are counted for all states together. Means and covariances are counted per state and mixture. With 5
# states and 4 mixtures, 12 parameters are missing. Their penalty is small for more states and mixtures, which are then selected
# too often.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet hmmlearn==0.3.3 numpy==2.4.6 scipy==1.17.1 scikit-learn==1.7.2
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import numpy as np
from hmmlearn.hmm import GMMHMM, GaussianHMM

print(f'hmmlearn {version("hmmlearn")}')
rng = np.random.default_rng(0)
data = rng.normal(size=(400, 2)) + rng.integers(0, 3, (400, 1)) * 4
for states, mixtures in ((2, 1), (2, 3), (5, 4)):
    model = GMMHMM(states, mixtures, covariance_type='diag', n_iter=3, random_state=0).fit(data)
    seen = (model.bic(data) + 2 * model.score(data)) / np.log(len(data))
    aic = (model.aic(data) + 2 * model.score(data)) / 2
    assert model.weights_.shape == (states, mixtures) and np.allclose(model.weights_.sum(1), 1)
    right = (states - 1) + states * (states - 1) + model.means_.size + model.covars_.size + states * (mixtures - 1)
    print(f'{states} states, {mixtures} mixtures: {seen:.2f} parameters, by the definition {right}')
    assert np.isclose(seen, right - (states - 1) * (mixtures - 1)) and np.isclose(aic, seen), 'this has changed'
single = GaussianHMM(2, covariance_type='diag', n_iter=3, random_state=0).fit(data)
seen = (single.bic(data) + 2 * single.score(data)) / np.log(len(data))
print(f'GaussianHMM, 2 states: {seen:.2f} parameters, by the definition 11')
assert np.isclose(seen, 11)
PY
