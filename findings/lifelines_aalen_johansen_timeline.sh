#!/usr/bin/env bash
# lifelines 0.30.3: AalenJohansenFitter with a timeline gives NaN or too low values, and its estimate has other times than its
# timeline.
#
# Expected: timeline is documented as "return the best estimate at the values in timelines (positively increasing)".
# KaplanMeierFitter and NelsonAalenFitter do that. So the cumulative incidence at times 2, 4, 6, 8 and 10 is that of the last
# observed time up to each.
# Seen: the survival function at the times of the timeline is put into a table of the observed times. Where survival is
# missing there, the incidence is NaN, or too low, as the event is not added. The result has a row for each observed time, and
# none for other times of the timeline. No warning appears.
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
times, events = np.array([1, 3, 5, 6, 7, 8.5, 9, 11]), np.array([1, 2, 1, 0, 2, 1, 2, 1])
timeline = [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]


def by_definition(end):
    survival, incidence = 1.0, 0.0
    for time in times[(times <= end) & (events > 0)]:
        risk = (times >= time).sum()
        incidence += survival * (events[times == time][0] == 1) / risk
        survival *= 1 - 1 / risk
    return incidence


right = [by_definition(end) for end in timeline]
whole = AalenJohansenFitter().fit(times, events, 1).cumulative_density_['CIF_1']
assert np.allclose(whole.asof(timeline), right)
for fitter, name in ((KaplanMeierFitter(), 'survival_function_'), (NelsonAalenFitter(), 'cumulative_hazard_')):
    table = getattr(fitter.fit(times, events > 0, timeline=timeline), name)
    print(f'{type(fitter).__name__}: times {table.index.tolist()}, values {table.iloc[:, 0].round(3).tolist()}')
    assert table.index.tolist() == timeline and table.notna().all().all()
seen = AalenJohansenFitter().fit(times, events, 1, timeline=timeline).cumulative_density_['CIF_1']
print(f'AalenJohansenFitter: times {seen.index.tolist()}, values {seen.round(3).tolist()}')
print(f'by the definition: times {timeline}, values {np.round(right, 3).tolist()}')
lost = seen.isna().sum()
print(f'{lost} of {len(seen)} values are NaN, the value at 7 is {seen.loc[7.0]:.3f} instead of {by_definition(7.0):.3f}')
assert seen.index.tolist() == whole.index.tolist() and lost == 6, 'this has changed'
assert abs(seen.loc[7.0] - by_definition(7.0)) > 0.1, 'this has changed'
PY
