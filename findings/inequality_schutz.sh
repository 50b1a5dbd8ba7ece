#!/usr/bin/env bash
# inequality 1.1.2: the Schutz coefficient grows with the number of observations: of the same incomes, all twice, it is twice as large.
#
# Expected: the Schutz coefficient is the sum of the slopes of the Lorenz curve above 1, less 1, each times the share of the population
# (Schutz 1951). In percent, it is 100 times the largest distance of the curve from the line of equality. Each person twice changes
# nothing.
# Seen: each slope counts for 10 percent of the population, whatever the number of observations is: the formula of a table of deciles. Of
# five incomes, the example of its own documentation, the coefficient is 7.5 and the distance 0.15, so that 15 is right. Of 1000 incomes
# the coefficient is over 100, where 100 is the most there is. Only with ten observations it is right. Cities of different size can not be
# compared.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet numpy==2.4.6 scipy==1.17.1 pandas==3.1.1 matplotlib==3.11.2
"$folder/venv/bin/pip" install --quiet --no-deps inequality==1.1.2
cd "$folder"
MPLBACKEND=Agg "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import numpy as np
import pandas as pd
from inequality.schutz import Schutz

print(f'inequality {version("inequality")}')


def by_definition(y):
    share, slope = 1 / len(y), y / y.mean()
    return 100 * ((slope - 1) * share)[slope > 1].sum()


example = np.array([1000, 2000, 1500, 3000, 2500.0])
incomes = {
    'five incomes': example,
    'the same, twice': np.repeat(example, 2),
    'the same, 200 times': np.repeat(example, 200),
    'of ten persons, one has all': np.array([0.0] * 9 + [1]),
    'of 20 persons, two have all': np.array([0.0] * 18 + [1] * 2),
}
for name, y in incomes.items():
    seen = Schutz(pd.DataFrame({'y': y}), 'y')
    right = by_definition(y)
    print(f'{name}: coefficient {seen.coefficient:.2f}, expected {right:.2f}, distance {seen.distance:.3f}')
    assert np.isclose(right, 100 * seen.distance), 'this has changed'
    assert np.isclose(seen.coefficient, right * len(y) / 10), 'this has changed'
PY
