#!/usr/bin/env bash
# lifelines 0.30.3: BreslowFlemingHarringtonFitter takes weights and ignores them.
#
# Expected: its fit() has the argument weights, as those of KaplanMeierFitter and NelsonAalenFitter. There, weights are for "a
# weighted dataset": "instead of providing every subject as a single element of `durations` and `event_observed`, one could
# weigh subject differently". "Mathematically, the Nelson-Aalen estimator is the negative logarithm of the
# Breslow-Fleming-Harrington estimator". So a row of weight 3 counts as three rows.
# Seen: fit() does not pass weights on. The survival function is that without weights, no error or warning appears, and the
# event table has every row once. The same data with each row repeated give another result.
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
from lifelines import BreslowFlemingHarringtonFitter, KaplanMeierFitter, NelsonAalenFitter

print(f'lifelines {version("lifelines")}')
rng = np.random.default_rng(0)
times, events, weights = rng.exponential(5, 40), rng.integers(0, 2, 40), rng.integers(1, 6, 40)
rows, at = np.repeat(np.arange(40), weights), [2.0, 5.0, 8.0]


def by_definition(times, events):  # the smoothed Nelson-Aalen estimate, in which tied events come one after the other
    hazards = []
    for end in at:
        total = 0.0
        for time in np.unique(times[(events == 1) & (times <= end)]):
            risk, deaths = (times >= time).sum(), ((times == time) & (events == 1)).sum()
            total += sum(1 / (risk - k) for k in range(deaths))
        hazards.append(total)
    return np.array(hazards)


plain, right = by_definition(times, events), by_definition(times[rows], events[rows])
nelson = NelsonAalenFitter().fit(times, events, weights=weights).cumulative_hazard_at_times(at).to_numpy()
kaplan = [KaplanMeierFitter().fit(times, events, weights=weights).survival_function_at_times(at).to_numpy(),
          KaplanMeierFitter().fit(times[rows], events[rows]).survival_function_at_times(at).to_numpy()]  # fmt: skip
fitter = BreslowFlemingHarringtonFitter().fit(times, events, weights=weights)
seen = fitter.survival_function_at_times(at).to_numpy()
print(f'times {at}')
print(f'Nelson-Aalen, weights: cumulative hazard {nelson.round(3)}, by the definition {right.round(3)}')
print(f'Kaplan-Meier: weights {kaplan[0].round(3)}, repeated rows {kaplan[1].round(3)}')
print(f'Breslow-Fleming-Harrington, weights: survival {seen.round(3)}, by the definition {np.exp(-right).round(3)}, '
      f'without weights {np.exp(-plain).round(3)}')  # fmt: skip
print(f'at risk at the start: {int(fitter.event_table["at_risk"].iloc[0])}, sum of weights {weights.sum()}')
assert np.allclose(nelson, right) and np.allclose(*kaplan)
assert np.allclose(seen, np.exp(-plain)) and np.abs(seen - np.exp(-right)).max() > 0.01, 'this has changed'
PY
