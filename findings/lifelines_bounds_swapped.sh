#!/usr/bin/env bash
# lifelines 0.30.3: three kinds of confidence intervals have their lower bound in the column of the upper one.
#
# Expected: ci_labels is documented as "[<lower-bound name>, <upper-bound name>]" for KaplanMeierFitter and NelsonAalenFitter,
# and AalenJohansenFitter gives "<label>_lower" as the first of its default names. So in a column with "lower" stands the
# smaller bound, and the estimate is between both.
# Seen: AalenJohansenFitter names the first column "upper", and puts the lower bound of the cumulative incidence there. With
# ci_labels of the user, the order is right. The intervals of the smoothed hazard of NelsonAalenFitter, and those of
# KaplanMeierFitter for left-censored data, have exchanged values. A table of estimates with these columns shows an upper
# bound below the estimate.
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
from lifelines import AalenJohansenFitter, KaplanMeierFitter, NelsonAalenFitter

print(f'lifelines {version("lifelines")}')
rng = np.random.default_rng(0)
times, events = rng.exponential(5, 60), rng.integers(0, 3, 60)


def show(name, estimate, interval, swapped):
    lower, upper = (next(column for column in interval if end in column) for end in ('lower', 'upper'))
    row = 30
    value, low, high = estimate.iloc[row], interval[lower].iloc[row], interval[upper].iloc[row]
    print(f'{name}: estimate {value:.3f}, column {lower} {low:.3f}, column {upper} {high:.3f}')
    assert (high < value < low) == swapped and (low < value < high) == (not swapped), 'this has changed'
    return sorted((low, high))


kaplan = KaplanMeierFitter().fit(times, events > 0)
show('Kaplan-Meier', kaplan.survival_function_['KM_estimate'], kaplan.confidence_interval_, False)
nelson = NelsonAalenFitter().fit(times, events > 0)
show('Nelson-Aalen', nelson.cumulative_hazard_['NA_estimate'], nelson.confidence_interval_, False)
hazard = nelson.smoothed_hazard_(2.0).iloc[:, 0]
show('Nelson-Aalen, smoothed hazard', hazard, nelson.smoothed_hazard_confidence_intervals_(2.0), True)
left = KaplanMeierFitter().fit_left_censoring(times, events > 0)
show('Kaplan-Meier, left censoring', left.survival_function_['KM_estimate'], left.confidence_interval_, True)
johansen = AalenJohansenFitter().fit(times, events, event_of_interest=1)
seen = show('Aalen-Johansen', johansen.cumulative_density_['CIF_1'], johansen.confidence_interval_, True)
named = AalenJohansenFitter().fit(times, events, event_of_interest=1, ci_labels=['lower', 'upper'])
show('Aalen-Johansen, with ci_labels', named.cumulative_density_['CIF_1'], named.confidence_interval_, False)

# The bounds of Aalen-Johansen by the documented formula: exp(-exp(log(-log F) +- z SE / (F |log F|))).
value, variance = johansen.cumulative_density_['CIF_1'].iloc[30], johansen.variance_.iloc[30]
step = 1.959963984540054 * np.sqrt(variance) / (value * abs(np.log(value)))
right = sorted(np.exp(-np.exp(np.log(-np.log(value)) + sign * step)) for sign in (-1, 1))
print(f'Aalen-Johansen, by the documented formula: lower {right[0]:.3f}, upper {right[1]:.3f}')
assert np.allclose(seen, right)
PY
