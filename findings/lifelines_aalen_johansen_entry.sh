#!/usr/bin/env bash
# lifelines 0.30.3: AalenJohansenFitter with entry times counts subjects as at risk who enter at the time of the event.
#
# Expected: the cumulative incidences of all kinds of events and the survival of Kaplan-Meier sum up to 1, as one of these is
# the case for every subject. The fitter takes survival from its KaplanMeierFitter. There, subjects who enter at the time of
# an event are not at risk for it: "we kill people, compute the ratio, and then "add" the entrants", says its source, after
# issue 497.
# Seen: survival is without those who enter at this time, and the incidences are divided by a number with them. So the
# incidences are too low as soon as a subject enters at a time at which another has an event, as times in whole days or months
# often have it. Part of the probability is in none of the states. Without such ties, the sum is 1.
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
from lifelines import AalenJohansenFitter, KaplanMeierFitter

print(f'lifelines {version("lifelines")}')
times = np.array([3, 5, 6, 8, 9, 11, 12, 13.0])
events = np.array([1, 2, 1, 0, 2, 1, 2, 1])


def by_definition(entry):
    survival, incidence = 1.0, {1: 0.0, 2: 0.0}
    for time in np.unique(times[events > 0]):
        risk = ((entry < time) & (times >= time)).sum()
        for kind in incidence:
            incidence[kind] += survival * ((times == time) & (events == kind)).sum() / risk
        survival *= 1 - ((times == time) & (events > 0)).sum() / risk
    return incidence[1], incidence[2], survival


for name, entry in (('no ties', np.array([0, 0, 0, 0, 4.5, 0, 5.5, 8.5])), ('ties', np.array([0, 0, 0, 0, 5, 0, 6, 9.0]))):
    seen = [AalenJohansenFitter().fit(times, events, kind, entry=entry).cumulative_density_.iloc[-1, 0] for kind in (1, 2)]
    seen.append(KaplanMeierFitter().fit(times, events > 0, entry=entry).survival_function_.iloc[-1, 0])
    right = by_definition(entry)
    print(f'{name}: incidences {seen[0]:.4f} and {seen[1]:.4f}, survival {seen[2]:.4f}, sum {sum(seen):.4f}. '
          f'By the definition {right[0]:.4f}, {right[1]:.4f}, {right[2]:.4f}, sum {sum(right):.4f}')  # fmt: skip
    assert np.isclose(sum(right), 1) and np.isclose(seen[2], right[2])
    assert np.allclose(seen, right) == (name == 'no ties') and (sum(seen) < 0.95) == (name == 'ties'), 'this has changed'
PY
