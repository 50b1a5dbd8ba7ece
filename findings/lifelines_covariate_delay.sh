#!/usr/bin/env bash
# lifelines 0.30.3: add_covariate_to_timeline with a delay shifts the times in the table of the user, so that a second call
# shifts twice.
#
# Expected: delay is to "add a delay to covariates (useful for checking for reverse causality in analysis)". The function
# returns "a DataFrame with updated rows". cv is "a DataFrame that contains (possibly more than) one covariate to track over
# time". Nothing says that it is changed. The function is "meant to be used iteratively", and calls with delays 0, 1 and 2 are
# to be compared.
# Seen: the delay is added in place to the column of times of cv. A second call with the same cv gives times with both delays.
# A loop over delays 0, 1, 2, 3 has in fact 0, 1, 3, 6. No warning appears.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet lifelines==0.30.3 numpy==2.4.6 scipy==1.17.1 pandas==2.3.3 \
    autograd==1.9.1 autograd-gamma==0.5.0 formulaic==1.2.2 matplotlib==3.11.2
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import pandas as pd
from lifelines.utils import add_covariate_to_timeline, to_long_format

print(f'lifelines {version("lifelines")}')
subjects = to_long_format(pd.DataFrame({'id': [1, 2], 'duration': [20, 18], 'event': [1, 0]}), 'duration')
measured = pd.DataFrame({'id': [1, 1, 2], 'time': [0, 4, 5], 'dose': [1.0, 2.0, 3.0]})
original, total = measured.copy(), 0
for delay in (0, 1, 2, 3):
    total += delay
    shared = add_covariate_to_timeline(subjects, measured, 'id', 'time', 'event', delay=delay)
    fresh = add_covariate_to_timeline(subjects, original.copy(), 'id', 'time', 'event', delay=delay)
    starts, right = (table.loc[table['dose'].notna(), 'start'].tolist() for table in (shared, fresh))
    print(f'delay {delay}: the doses start at {starts}, with a fresh copy of the table at {right}')
    assert right == [time + delay for time in original['time']]
    assert starts == [time + total for time in original['time']] and (starts == right) == (delay < 2), 'this has changed'
print(f'times in the table of the user after the calls: {measured["time"].tolist()}, before: {original["time"].tolist()}')
assert measured['time'].tolist() == [6, 10, 11], 'this has changed'
PY
