#!/usr/bin/env bash
# lifelines 0.30.3: the test of two Kaplan-Meier curves at a fixed time interpolates the variance, although not the curves.
#
# Expected: survival_difference_at_fixed_point_in_time_test "uses the log(-log) transformation" of Klein et al. (2007). Its
# statistic has the survival estimates at t, and Greenwood's sums d / (n (n - d)) over event times up to t. Both are steps.
# They are constant between two observed times, and so are the statistic and the p-value.
# Seen: survival is that of the last event before t. The sum is interpolated linearly between observed times, so that it has a
# part of the next event. The statistic falls between two times at which nothing happens. The usual question is of such a
# time, for instance "5-year survival". After the last time, and at observed times, the test is right.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet lifelines==0.30.3 numpy==2.4.6 scipy==1.17.1 pandas==2.3.3 \
    autograd==1.9.1 autograd-gamma==0.5.0 formulaic==1.2.2 matplotlib==3.11.2
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import numpy as np
from lifelines import KaplanMeierFitter
from lifelines.statistics import survival_difference_at_fixed_point_in_time_test

print(f'lifelines {version("lifelines")}')
one = np.array([1, 1.5, 2, 2.5, 3, 3.5, 4, 9, 10, 11.0])
two = np.array([4, 8, 8.5, 9, 9.5, 10, 10.5, 11, 11.5, 12.0])


def part(times, end):
    survival, total = 1.0, 0.0
    for time in np.unique(times[times <= end]):  # each time is an event here
        risk, deaths = (times >= time).sum(), (times == time).sum()
        survival *= 1 - deaths / risk
        total += deaths / (risk * (risk - deaths))
    return survival, total


def by_definition(end):
    (first, variance_1), (second, variance_2) = part(one, end), part(two, end)
    difference = np.log(-np.log(first)) - np.log(-np.log(second))
    return difference**2 / (variance_1 / np.log(first) ** 2 + variance_2 / np.log(second) ** 2)


fitters = [KaplanMeierFitter().fit(times) for times in (one, two)]
for end in (4.0, 5.0, 6.0, 7.0, 7.9):
    survival = [fitter.predict(end) for fitter in fitters]
    result, right = survival_difference_at_fixed_point_in_time_test(end, *fitters), by_definition(end)
    print(f'time {end}: survival {survival[0]:.2f} and {survival[1]:.2f}, statistic {result.test_statistic:.4f} '
          f'(p = {result.p_value:.4f}), by the definition {right:.4f}')  # fmt: skip
    assert np.allclose(survival, [part(times, end)[0] for times in (one, two)])
    assert np.isclose(result.test_statistic, right) == (end == 4) and result.test_statistic < right + 1e-9, 'this has changed'
PY
