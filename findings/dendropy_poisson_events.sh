#!/usr/bin/env bash
# DendroPy 5.1.3: num_poisson_events divides by the rate, and poisson_rv of a rate above 64 ignores its random number generator.
#
# Expected: num_poisson_events is "the number of events that have occurred in a Poisson process of rate over period" (docstring,
# dendropy.calculate.probability): its mean is rate * period. poisson_rv(rate, rng) draws from rng, so that a seed gives the
# same number again.
# Seen: the waiting time is expovariate(1 / rate), where expovariate takes the rate, and not the mean: the mean number of events
# is period / rate. It falls as the rate grows, and only with a rate of 1 it is right. Above 64, poisson_rv calls itself for
# both halves of the rate without rng, and the numbers come from the global generator.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet dendropy==5.1.3 numpy==2.4.6
cd "$folder"
"$folder/venv/bin/python" -W ignore - <<'PY'
import random
from importlib.metadata import version

import numpy as np
from dendropy.calculate.probability import num_poisson_events, poisson_rv

print(f'DendroPy {version("dendropy")}')
rng = random.Random(0)
period, draws = 8.0, 4000
for rate in (0.25, 0.5, 1.0, 2.0, 4.0):
    seen = np.mean([num_poisson_events(rate, period, rng) for _ in range(draws)])
    print(f'rate {rate}, period {period}: mean number of events {seen:.2f}, by the definition {rate * period:.2f}')
    assert abs(seen - period / rate) < 6 * np.sqrt(period / rate / draws), 'this has changed'

for rate in (4.0, 64.0, 65.0, 1000.0):
    numbers = [poisson_rv(rate, random.Random(0)) for _ in range(20)]
    other = [np.mean([poisson_rv(rate, rng) for _ in range(300)])]
    print(f'poisson_rv({rate}, Random(0)), 20 times: {len(set(numbers))} different numbers, mean of 300 {other[0]:.1f}')
    assert (len(set(numbers)) == 1) == (rate <= 64), 'this has changed'
PY
