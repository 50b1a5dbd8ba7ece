#!/usr/bin/env bash
# graphrole 1.1.1: the error of a model with roles does not count wrong values where the feature is 0.
#
# Expected: "KL divergence as given in section 2.3 of RolX paper", the sum of V log(V / W) - V + W, with the features V and
# their approximation W. Where V is 0, the term is W. The comment on the mask says "to ensure correct value".
# Seen: these terms are 0. So a model pays nothing for features that it adds to nodes without them. Many features are 0 for many
# nodes. RoleExtractor selects the number of roles by this cost.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet graphrole==1.1.1 numpy==1.26.4 pandas==1.5.3 scipy==1.11.4 scikit-learn==1.5.2 \
  networkx==3.2.1
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import numpy as np
from graphrole.roles.description_length import get_error_cost
from scipy.special import kl_div

print(f'graphrole {version("graphrole")}')
rng = np.random.default_rng(0)
cases = {
    'without zeros': (np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[2.0, 2.0], [3.0, 1.0]])),
    'zeros, wrong there alone': (np.array([[0.0, 2.0], [3.0, 0.0]]), np.array([[9.0, 2.0], [3.0, 7.0]])),
    'random counts': (rng.poisson(1.0, (30, 6)).astype(float), rng.random((30, 6)) * 2),
}
for name, (features, model) in cases.items():
    seen = get_error_cost(features, model)
    right = sum(v * np.log(v / w) - v + w if v else w for v, w in zip(features.ravel(), model.ravel()))
    print(f'{name}: error {seen:.3f}, by the definition {right:.3f}')
    assert np.isclose(right, kl_div(features, model).sum())
    assert np.isclose(seen, right - model[features == 0].sum()), 'this has changed'
assert get_error_cost(*cases['zeros, wrong there alone']) == 0, 'this has changed'
PY
