#!/usr/bin/env bash
# NeuroKit2 0.3.0: cosine similarity entropy depends on the unit of the signal, as its tolerance of angles does.
#
# Expected: entropy_cosinesimilarity has modifications "which makes the CoSiEn amplitude-independent". In the cited paper
# (Chanwimalueang and Mandic 2017), the tolerance is compared with angles between vectors, as parts of pi. It is a number from
# 0 to 1, such as 0.07. So the same signal in volts and in millivolts has the same entropy.
# Seen: the default tolerance is 0.2 times the standard deviation of the signal ("sd"), and it is compared with angles. Times
# 0.1, 1, 3 and 10, a signal has entropies of 0.009, 0.32, 0.63 and 0: with a tolerance above 1, all vectors are similar. With
# tolerance=0.07, all is as in the paper.
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


def by_definition(signal, tolerance, m=3):
    signal = signal - np.median(signal)
    vectors = np.stack([signal[k : len(signal) - m + 1 + k] for k in range(m)], axis=1)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    cosines = (vectors @ vectors.T)[np.triu_indices(len(vectors), 1)]
    b = np.mean(np.arccos(np.clip(cosines, -1, 1)) / np.pi <= tolerance)
    return 0 if b in (0, 1) else -b * np.log(b) - (1 - b) * np.log(1 - b)


signal = np.random.default_rng(0).normal(size=300)
seen = []
for factor in (0.1, 1, 3, 10):
    value, info = neurokit2.entropy_cosinesimilarity(factor * signal)
    given, right = neurokit2.entropy_cosinesimilarity(factor * signal, tolerance=0.07)[0], by_definition(factor * signal, 0.07)
    print(f'signal times {factor}: {value:.4f}, tolerance {info["Tolerance"]:.3f}. '
          f'With tolerance 0.07: {given:.4f}, by the definition {right:.4f}')  # fmt: skip
    assert np.isclose(given, right, atol=1e-3) and np.isclose(value, by_definition(signal, info['Tolerance']), atol=1e-2)
    seen.append(value)
assert seen[0] < 0.05 < seen[1] < 0.5 < seen[2] and seen[3] == 0, 'this has changed'
PY
