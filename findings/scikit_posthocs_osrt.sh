#!/usr/bin/env bash
# scikit-posthocs 0.17.1: test_osrt, one-sided for increasing means, has small p-values for decreasing means too.
#
# Expected: test_osrt is "Hayter's one-sided studentised range test". It "tests a hypothesis against an ordered alternative".
# The statistic of Hayter (1990) is the largest of the differences of a later and an earlier mean, divided by their scale. The
# sign is kept. So if all means decrease, it is not positive, and the p-value is 1.
# Seen: the absolute differences are taken. So the order of the groups does not matter, and the test is Tukey's two-sided test
# of the largest difference. Strongly decreasing means have a p-value near 0.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet scikit-posthocs==0.17.1 numpy==2.4.6 scipy==1.17.1 pandas==3.1.1 statsmodels==0.15.0
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import numpy as np
from scikit_posthocs import test_osrt
from scipy.stats import studentized_range

print(f'scikit-posthocs {version("scikit-posthocs")}')


def by_definition(groups):
    sizes, means = np.array([len(x) for x in groups]), np.array([np.mean(x) for x in groups])
    degrees = sizes.sum() - len(groups)
    sigma = np.sqrt(sum(((x - np.mean(x)) ** 2).sum() for x in groups) / degrees)
    pairs = [(i, j) for i in range(len(groups)) for j in range(i + 1, len(groups))]
    return max((means[j] - means[i]) / (sigma / np.sqrt(2) * np.sqrt(1 / sizes[i] + 1 / sizes[j])) for i, j in pairs), degrees


rng = np.random.default_rng(0)
for name, shifts in (('increasing', (0, 1, 2)), ('decreasing', (2, 1, 0))):
    groups = [rng.normal(shift, 1, 15) for shift in shifts]
    p, statistic, degrees = test_osrt(groups)
    right, n = by_definition(groups)
    bound = studentized_range.sf(max(right, 0), 3, n)  # the one-sided p-value is below this one if the statistic is positive
    reverse = test_osrt(groups[::-1])[1]
    print(f'{name} means: statistic {statistic:.2f}, p {p:.2g}, of the reversed order {reverse:.2f}. '
          f'By the definition, statistic {right:.2f}{", p 1" if right <= 0 else ""}')  # fmt: skip
    assert degrees == n and np.isclose(statistic, reverse), 'this has changed'
    assert np.isclose(statistic, right) == (name == 'increasing'), 'this has changed'
    if name == 'decreasing':
        assert right < 0 and bound == 1 and p < 0.001, 'this has changed'
PY
