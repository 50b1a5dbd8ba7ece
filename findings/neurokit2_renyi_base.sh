#!/usr/bin/env bash
# NeuroKit2 0.3.0: the Renyi entropy is in nats, although its formula has log_2, as the Shannon entropy of the package.
#
# Expected: entropy_renyi "is mathematically defined as" 1 / (1 - alpha) log_2(sum of p^alpha), and for alpha = 1 "the Renyi
# entropy becomes the Shannon entropy" of entropy_shannon, which is in bits by default. For alpha = 0, n equally frequent
# symbols have log_2(n), as entropy_maximum.
# Seen: the natural logarithm is used, for each alpha: two equally frequent symbols have 0.693 instead of 1. No option changes
# this.
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
for signal in ([0, 1], [1, 3, 3, 2, 6, 6, 6, 1, 0], [0, 1, 2, 3, 4, 5, 6, 7]):
    p = np.unique(signal, return_counts=True)[1] / len(signal)
    shannon, hartley = neurokit2.entropy_shannon(signal)[0], neurokit2.entropy_maximum(np.array(signal))[0]
    for alpha in (0, 1, 2):
        seen = neurokit2.entropy_renyi(signal, alpha=alpha)[0]
        right = -(p * np.log2(p)).sum() if alpha == 1 else np.log2((p**alpha).sum()) / (1 - alpha)
        print(f'{signal}, alpha {alpha}: {seen:.4f}, by the definition {right:.4f}')
        assert alpha == 2 or np.isclose(right, (hartley, shannon)[alpha])
        assert np.isclose(seen, right * np.log(2)), 'this has changed'
PY
