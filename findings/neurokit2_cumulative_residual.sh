#!/usr/bin/env bash
# NeuroKit2 0.3.0: the cumulative residual entropy is that of the cumulative distribution, not that of the residual.
#
# Expected: entropy_cumulativeresidual is -int_0^inf p(|X| > x) log2 p(|X| > x) dx (documentation, and Rao et al. 2004). p(|X|
# > x) is the residual, 1 minus the cumulative distribution.
# Seen: the terms use the cumulative distribution, p(X <= x). Both are the same only for symmetric signals. Nine times 1 and
# once 10 have 1.23, and 2.99 is right. Once 1 and nine times 10 have 2.99, and 1.23 is right.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet neurokit2==0.3.0 numpy==2.4.6 scipy==1.17.1 pandas==3.1.1 scikit-learn==1.8.0
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import neurokit2
import numpy as np

print(f'NeuroKit2 {version("neurokit2")}')


def entropies(signal):
    """The integrals over the residual and over the cumulative distribution, for values from 0."""
    steps = np.unique([0, *signal])
    result = []
    for above in (True, False):
        total = 0
        for start, end in zip(steps[:-1], steps[1:]):
            p = np.mean(np.array(signal) > start)
            p = p if above else 1 - p
            total -= (end - start) * p * np.log2(p) if p > 0 else 0
        result.append(total)
    return result


for signal in ([1, 2, 3, 4, 5, 6], [1] * 9 + [10], [1] + [10] * 9, [1, 1, 2, 2, 2, 7], [0, 1, 1, 3, 8, 20]):
    seen = neurokit2.entropy_cumulativeresidual(signal)[0]
    right, wrong = entropies(signal)
    print(f'{signal}: {seen:.4f}, by the definition {right:.4f}')
    assert np.isclose(seen, wrong) and np.isclose(seen, right) == (signal == [1, 2, 3, 4, 5, 6]), 'this has changed'
PY
