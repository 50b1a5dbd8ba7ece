#!/usr/bin/env bash
# lifelines 0.30.3: the Fleming-Harrington test with case weights takes its survival curve from the data without weights.
#
# Expected: weights of multivariate_logrank_test are "case-weights". So a row of weight 3 is the same as three rows. The
# Fleming-Harrington test weights time t_i with S(t_i)^p (1 - S(t_i))^q, where S is "the left-continuous Kaplan-Meier survival
# estimate" of the data.
# Seen: numbers of events and of those at risk are weighted, and the Kaplan-Meier estimate inside is not. Test statistic and
# p-value are those of no data set. The log-rank, Wilcoxon, Tarone-Ware and Peto tests are the same with weights and with
# repeated rows. logrank_test with weights_A and weights_B calls the same function.
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
from lifelines.statistics import logrank_test, multivariate_logrank_test

print(f'lifelines {version("lifelines")}')
rng = np.random.default_rng(3)
n = 60
groups, events = rng.integers(0, 2, n), rng.integers(0, 4, n) > 0
times = rng.exponential(np.where(groups, 8, 5)) + 0.1
weights = np.where(times < 4, rng.integers(1, 4, n), rng.integers(4, 9, n))
rows = np.repeat(np.arange(n), weights)


def by_definition(times, groups, events, p, q):
    survival, score, variance = 1.0, 0.0, 0.0
    for time in np.unique(times[events]):
        risk, risk_1 = (times >= time).sum(), (times[groups == 1] >= time).sum()
        deaths, deaths_1 = ((times == time) & events).sum(), ((times == time) & events & (groups == 1)).sum()
        weight = survival**p * (1 - survival) ** q
        score += weight * (deaths_1 - deaths * risk_1 / risk)
        if risk > 1:
            variance += weight**2 * deaths * risk_1 / risk * (1 - risk_1 / risk) * (risk - deaths) / (risk - 1)
        survival *= 1 - deaths / risk
    return score**2 / variance


one, two = groups == 0, groups == 1
for name, options in (('logrank', {}), ('wilcoxon', {}), ('peto', {}), ('fleming-harrington', {'p': 1, 'q': 0}),
                      ('fleming-harrington', {'p': 0, 'q': 1}), ('fleming-harrington', {'p': 1, 'q': 1})):  # fmt: skip
    weightings = None if name == 'logrank' else name
    seen = multivariate_logrank_test(times, groups, events, weights=weights, weightings=weightings, **options)
    pair = logrank_test(times[one], times[two], events[one], events[two], weights_A=weights[one], weights_B=weights[two],
                        weightings=weightings, **options)  # fmt: skip
    repeated = multivariate_logrank_test(times[rows], groups[rows], events[rows], weightings=weightings, **options)
    print(f'{name} {options}: weights {seen.test_statistic:.4f} (p = {seen.p_value:.4f}), '
          f'repeated rows {repeated.test_statistic:.4f} (p = {repeated.p_value:.4f})')  # fmt: skip
    assert np.isclose(seen.test_statistic, pair.test_statistic), 'this has changed'
    if options:
        right = by_definition(times[rows], groups[rows], events[rows], **options)
        print(f'   by the definition, repeated rows: {right:.4f}')
        assert np.isclose(right, repeated.test_statistic)
        assert abs(seen.test_statistic / right - 1) > 0.03, 'this has changed'
    else:
        assert np.isclose(seen.test_statistic, repeated.test_statistic), 'this has changed'
PY
