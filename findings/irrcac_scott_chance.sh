#!/usr/bin/env bash
# irrCAC 0.4.4: Scott's pi of a table is returned with a chance agreement of 0, which is another number.
#
# Expected: the result has the coefficient, the percent agreement pa and the percent chance agreement pe, and the coefficient is
# (pa - pe) / (1 - pe), as of all other methods. For Scott's pi, pe is the sum of the squares of the mean marginal proportions.
# Seen: table.CAC.scott returns pe = 0, whatever the table. The coefficient itself is right, so it contradicts pa and pe.
# For two raters without missing values, Fleiss' kappa is Scott's pi. raw.CAC.fleiss returns the right pe.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet irrCAC==0.4.4 numpy==1.26.4 scipy==1.12.0 pandas==2.3.3
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import numpy as np
import pandas as pd
from irrCAC import raw, table

print(f'irrCAC {version("irrCAC")}')
counts = np.array([[20, 5, 3], [2, 30, 4], [1, 6, 29]])
marginals = (counts.sum(0) + counts.sum(1)) / 2 / counts.sum()
agreement, chance = np.trace(counts) / counts.sum(), (marginals**2).sum()
coefficient = (agreement - chance) / (1 - chance)
print(f'by the definition: agreement {agreement:.5f}, chance agreement {chance:.5f}, coefficient {coefficient:.5f}')

of_table = table.CAC(pd.DataFrame(counts))
ratings = pd.DataFrame([pair for pair in np.ndindex(3, 3) for _ in range(counts[pair])])
for name, estimate, right in (
    ("Scott's pi of the table", of_table.scott()['est'], False),
    ("Cohen's kappa of the table", of_table.cohen()['est'], True),
    ("Krippendorff's alpha of the table", of_table.krippendorff()['est'], True),
    ("Fleiss' kappa of the ratings", raw.CAC(ratings).fleiss()['est'], True),
):
    value, pa, pe = (float(estimate[key]) for key in ('coefficient_value', 'pa', 'pe'))
    print(f'{name}: {value:.5f}, pa {pa:.5f}, pe {pe:.5f}, (pa - pe) / (1 - pe) = {(pa - pe) / (1 - pe):.5f}')
    assert np.isclose(value, (pa - pe) / (1 - pe), atol=1e-4) == right, 'this has changed'
    if name.startswith(('Scott', 'Fleiss')):
        assert np.isclose(value, coefficient, atol=1e-5), 'this has changed'
        assert np.isclose(pe, chance if right else 0, atol=1e-5), 'this has changed'
PY
