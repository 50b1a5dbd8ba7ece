#!/usr/bin/env bash
# mapclassify 2.10.0: KClassifiers always picks FisherJenks, as the number of classes and the fit are taken for each other.
#
# Expected: "Evaluate all k-classifers and pick optimal based on k and GADF". The results have, for each kind, the least k whose
# GADF exceeds pct. A kind with a smaller k is better, and with the same k, one with a larger GADF.
# Seen: gadf returns (k, classifier, GADF). pct0 is set to the first and k0 to the last for FisherJenks. So k of the others is
# compared with a number below 1, and is never smaller or the same. The best is FisherJenks for all data, also if Quantiles
# has the same k and a larger GADF.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet mapclassify==2.10.0 numpy==2.4.6 scipy==1.17.1 pandas==3.1.1 networkx==3.6.1 \
    scikit-learn==1.8.0 numba==0.68.1 llvmlite==0.50.0
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import numpy as np
from mapclassify.classifiers import KClassifiers

print(f'mapclassify {version("mapclassify")}')
for kind, seed in (('gamma', 13), ('gamma', 22), ('gamma', 31), ('gamma', 34), ('normal', 13), ('normal', 34)):
    rng = np.random.default_rng(seed)
    values = rng.gamma(1, size=30) if kind == 'gamma' else rng.normal(size=30)
    result = KClassifiers(values, pct=0.5)
    total = np.abs(values - np.median(values)).sum()
    fits = {}
    for name in ('FisherJenks', 'Quantiles'):
        k, classifier, fit = result.results[name]
        parts = [values[classifier.yb == label] for label in range(k)]
        fits[name] = (k, 1 - sum(np.abs(part - np.median(part)).sum() for part in parts) / total)
        assert np.isclose(fits[name][1], fit)
    print(f'{kind} {seed}: picked {result.best.name}. '
          + ', '.join(f'{name} k {k}, GADF {fit:.4f}' for name, (k, fit) in fits.items()))  # fmt: skip
    assert result.best.name == 'FisherJenks', 'this has changed'
    assert fits['Quantiles'][0] == fits['FisherJenks'][0] and fits['Quantiles'][1] > fits['FisherJenks'][1] + 0.002
PY
