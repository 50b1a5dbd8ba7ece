#!/usr/bin/env bash
# scikit-bio 0.7.4: the variance of Chao1 has 0.24 instead of 1/4, so that its confidence interval is too narrow.
#
# Expected: chao1_ci with bias_corrected=False, singletons and doubletons uses "Equations 5, 13" of the EstimateS manual.
# Equation 5 is F2 ((F1 / F2)^2 / 2 + (F1 / F2)^3 + (F1 / F2)^4 / 4). It is the variance of Chao (1987).
# Seen: the last term is 0.24 (F1 / F2)^4. Of 20 singletons and 2 doubletons, the variance is 6900 instead of 7100. The upper
# end of the interval is 445.6 instead of 452.2.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet scikit-bio==0.7.4 numpy==2.4.6 scipy==1.17.1 pandas==3.1.1
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import numpy as np
from skbio.diversity.alpha import chao1, chao1_ci

print(f'scikit-bio {version("scikit-bio")}')


def interval(observed, f1, f2, part):
    r, excess = f1 / f2, f1**2 / (2 * f2)
    variance = f2 * (r**2 / 2 + r**3 + part * r**4)
    k = np.exp(1.96 * np.sqrt(np.log(1 + variance / excess**2)))
    return variance, (observed + excess / k, observed + excess * k)


for f1, f2, others in ((20, 2, 10), (30, 1, 5), (5, 5, 5)):
    counts = [1] * f1 + [2] * f2 + [7] * others
    assert np.isclose(chao1(counts, bias_corrected=False), len(counts) + f1**2 / (2 * f2))
    seen = chao1_ci(counts, bias_corrected=False)
    (variance, right), (wrong_variance, wrong) = (interval(len(counts), f1, f2, part) for part in (0.25, 0.24))
    print(f'{f1} singletons, {f2} doubletons: interval {np.round(seen, 2)}, by the definition {np.round(right, 2)}. '
          f'Variances {wrong_variance:.1f} and {variance:.1f}')  # fmt: skip
    assert np.allclose(seen, wrong) and not np.allclose(seen, right), 'this has changed'
PY
