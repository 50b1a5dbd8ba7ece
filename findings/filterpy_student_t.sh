#!/usr/bin/env bash
# filterpy 2.0.0: random numbers of rand_student_t are too small by a factor of the square root of 2.
#
# Expected: rand_student_t returns a "random number distributed by student's t distribution with `df` degrees of freedom with
# the specified mean and standard deviation". With a scale of 1, the standard deviation of that distribution is sqrt(df / (df -
# 2)). That is near 1 for many degrees of freedom, as the distribution is nearly the normal distribution.
# Seen: a normal number is divided by the root of 2 times a chi-square number over df, since gammavariate(df / 2, 2), which is
# that chi-square number, is doubled. Standard deviations are 1 / sqrt(2) of those, also for many degrees of freedom, and
# whether std is read as the scale or as the standard deviation.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet filterpy==2.0.0 numpy==2.4.6 scipy==1.17.1
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
import random
from importlib.metadata import version

import numpy as np
from filterpy.stats import rand_student_t
from scipy.stats import kstest, t

print(f'filterpy {version("filterpy")}')
random.seed(0)
for df in (5, 10, 30, 1000):
    drawn = np.array([rand_student_t(df) for _ in range(50_000)])
    right = np.sqrt(df / (df - 2))
    fit, half = kstest(drawn, t(df).cdf).pvalue, kstest(drawn * np.sqrt(2), t(df).cdf).pvalue
    print(f'df {df}: standard deviation {drawn.std():.3f}, by the definition {right:.3f} for a scale of 1. '
          f'p-value of the distribution {fit:.1e}, and of the numbers times sqrt(2) {half:.2f}')  # fmt: skip
    assert fit < 1e-9 and half > 0.001 and abs(drawn.std() - right / np.sqrt(2)) < 0.05, 'this has changed'
PY
