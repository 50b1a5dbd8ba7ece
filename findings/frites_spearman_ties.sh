#!/usr/bin/env bash
# frites 0.4.6: the tensor Spearman correlation gives equal values different ranks, and depends on the order of the trials.
#
# Expected: CorrEstimator offers "the traditional vector-based implementation or the tensor-based implementation (usually
# faster)" of the "rank-based Spearman correlation". Equal values share their mean rank, so that the order of trials has no
# influence. Both implementations agree.
# Seen: implementation='tensor' takes argsort of argsort as ranks. So equal values get different ranks, in the order of the
# trials. For a regressor of few levels, such as two conditions, the correlation is another one, and changes if trials are
# shuffled.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet frites==0.4.6 mne==1.13.2 numpy==2.4.6 scipy==1.17.1 xarray==2026.9.0
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import numpy as np
from frites.estimator import CorrEstimator

print(f'frites {version("frites")}')


def mean_ranks(values):
    return (values[:, None] > values).sum(1) + ((values[:, None] == values).sum(1) + 1) / 2


rng = np.random.default_rng(0)
x = np.sort(rng.normal(size=40))  # a drift over the trials
two, three = np.tile([0.0, 1.0], 20), np.tile([0.0, 1.0, 2.0], 14)[:40]
for name, y in (('no ties', rng.normal(size=40)), ('two levels', two), ('three levels', three), ('one level', np.ones(40))):
    if name == 'one level':
        y[0] = 2
    right = np.corrcoef(mean_ranks(x), mean_ranks(y))[0, 1]
    order = rng.permutation(40)
    results = {}
    for kind in ('vector', 'tensor'):
        estimator = CorrEstimator('spearman', kind, verbose=False)
        results[kind] = [float(estimator.estimate(a, b)[0, 0]) for a, b in
                         ((x[None, None], y[None, None]), (x[order][None, None], y[order][None, None]))]  # fmt: skip
    vector, tensor = results['vector'], results['tensor']
    print(f'{name}: tensor {tensor[0]:.3f}, shuffled trials {tensor[1]:.3f}, vector {vector[0]:.3f}, by mean ranks {right:.3f}')
    assert np.allclose(vector, right, atol=1e-5)
    assert np.allclose(tensor, right, atol=1e-5) == (name == 'no ties'), 'this has changed'
    assert (abs(tensor[0] - tensor[1]) > 0.05) == (name != 'no ties'), 'this has changed'
PY
