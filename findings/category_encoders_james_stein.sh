#!/usr/bin/env bash
# category_encoders 2.11.2: JamesSteinEncoder ignores the number of observations, and does not shrink categories seen once.
#
# Expected: the docs have JS_i = (1 - B) * mean(y_i) + B * mean(y). "If the observation counts are not equal, it makes sense to
# replace the variances with squared standard errors, which penalize small observation counts: SE^2 = var(y)/count(y). This is
# called an independent model", which is the default. So B is near 1 for a category with few observations, and near 0 for one
# with many.
# Seen: the independent model takes the variances themselves, and no counts. Categories of 2 and of 200 observations with the
# same variance have the same B. A category with one observation has a variance of 0, so that B is 0, and its only value is its
# code. The smallest categories so are shrunk least.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet category_encoders==2.11.2 numpy==2.4.6 pandas==2.3.3 scikit-learn==1.9.1 \
  scipy==1.17.1 statsmodels==0.15.0 patsy==1.0.3
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import numpy as np
import pandas as pd
from category_encoders import JamesSteinEncoder

print(f'category_encoders {version("category_encoders")}')
pair = np.array([-1.0, 1.0])
parts = {'a': 8 + pair, 'b': 8 + np.tile(pair, 100) * np.sqrt(199 / 200 * 2), 'c': np.array([15.0]),
         'd': np.tile(pair, 40), 'e': np.tile(pair, 60) - 1}  # fmt: skip
x = np.repeat(list(parts), [len(values) for values in parts.values()])
y = np.concatenate(list(parts.values()))
prior, total, factor = y.mean(), y.var(ddof=1), (len(parts) - 3) / (len(parts) - 1)  # the factor of Morris (1983)
encoder = JamesSteinEncoder(cols=['x']).fit(pd.DataFrame({'x': x}), pd.Series(y))
codes = dict(zip(parts, encoder.transform(pd.DataFrame({'x': list(parts)}))['x']))
weights = {}
for name, values in parts.items():
    n, mean = len(values), values.mean()
    variance = values.var(ddof=1) if n > 1 else total  # one observation says nothing about its variance
    seen = (codes[name] - mean) / (prior - mean)
    documented = factor * (variance / n) / (variance / n + total / len(y))
    own = factor * variance / (variance + total) if n > 1 else 0
    weights[name] = seen, documented
    print(f'category {name}, {n} observations, variance {variance:.2f}, mean {mean:.2f}: code {codes[name]:.2f}, '
          f'B {seen:.3f}, with the documented standard errors {documented:.3f}')  # fmt: skip
    assert np.isclose(seen, own), 'this has changed'
assert np.isclose(weights['a'][0], weights['b'][0]) and weights['a'][1] > 1.5 * weights['b'][1], 'this has changed'
assert codes['c'] == 15 and weights['c'][1] > 0.45, 'this has changed'
PY
