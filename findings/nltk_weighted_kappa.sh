#!/usr/bin/env bash
# nltk 3.10.4: weighted kappa with max_distance multiplies the disagreement, as only the expected one is divided by it.
#
# Expected: weighted_kappa(max_distance) is of "Cohen 1968", where kappa is 1 - D_o / D_e. Do_Kw_pairwise(cA, cB, max_distance)
# and the expected disagreement are both divided by max_distance, so that it cancels. For quadratic or linear weights, kappa
# does not depend on the scale of the distance.
# Seen: weighted_kappa_pairwise divides the expected disagreement by max_distance, but calls Do_Kw_pairwise(cA, cB) without it.
# So the result is 1 - max_distance * D_o / D_e. Coders who agree well get a kappa far below 0.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet nltk==3.10.4 numpy==2.4.6 regex==2026.11.19 joblib==1.6.0 tqdm==4.70.1 \
    click==8.5.1 defusedxml==0.7.1
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import numpy as np
from nltk.metrics.agreement import AnnotationTask

print(f'nltk {version("nltk")}')
rng = np.random.default_rng(0)
first = rng.integers(1, 6, 60)
second = np.clip(first + rng.integers(-1, 2, 60), 1, 5)
data = [(coder, item, int(label)) for coder, labels in (('a', first), ('b', second)) for item, label in enumerate(labels)]


def by_definition(weights):
    observed = np.zeros((5, 5))
    np.add.at(observed, (first - 1, second - 1), 1 / 60)
    return 1 - np.sum(weights * observed) / np.sum(weights * np.outer(observed.sum(1), observed.sum(0)))


steps = np.abs(np.subtract.outer(np.arange(5), np.arange(5)))
for name, power, largest in (('linear', 1, 4.0), ('quadratic', 2, 16.0)):
    task = AnnotationTask(data, distance=lambda x, y: abs(x - y) ** power)
    right, plain, seen = by_definition(steps**power), task.weighted_kappa(), task.weighted_kappa(max_distance=largest)
    scaled = AnnotationTask(data, distance=lambda x, y: abs(x - y) ** power / largest).weighted_kappa()
    print(f'{name} weights: max_distance={largest} gives {seen:.3f}, without it {plain:.3f}, with distances divided by it '
          f'{scaled:.3f}, by the definition {right:.3f}')  # fmt: skip
    assert np.isclose(plain, right) and np.isclose(scaled, right) and right > 0.6
    assert np.isclose(seen, 1 - largest * (1 - right)) and seen < 0, 'this has changed'
    assert np.isclose(task.Do_Kw_pairwise('a', 'b', largest), np.mean(np.abs(first - second) ** power) / largest)
PY
