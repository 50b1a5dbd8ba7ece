#!/usr/bin/env bash
# semopy 2.3.11: AIC and BIC get smaller the worse a model fits, since a measure of misfit is taken for the log-likelihood.
#
# Expected: AIC is 2 k - 2 L and BIC is log(n) k - 2 L, for the log-likelihood L and k parameters. The better of two models with
# as many parameters has the smaller one. calc_likelihood is to "calculate likelihood" and "Loglikelihood", and is LogLik in
# calc_stats.
# Seen: calc_likelihood in semopy/stats.py returns obj_mlw, the "Wishart likelihood logratio": 0 for a perfect fit, and larger
# for a worse one. It is the function that a fit makes small, with the other sign than L, and without the factor n / 2. So AIC
# is 2 k - 2 F: of models with as many parameters, the worst has the smallest AIC and BIC, and the number of samples does not
# matter for AIC.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet semopy==2.3.11 numpy==2.4.6 scipy==1.17.1 pandas==3.1.1 scikit-learn==1.8.0 \
  sympy==1.14.0 statsmodels==0.15.0 numdifftools==0.11.2
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import numpy as np
import pandas as pd
import semopy
from scipy.stats import multivariate_normal

print(f'semopy {version("semopy")}')
rng = np.random.default_rng(0)
n = 300
loadings = np.array([[1, 0.8, 0.7, 0, 0, 0], [0, 0, 0, 1, 0.9, 0.6]])
values = rng.normal(size=(n, 2)) @ loadings + 0.5 * rng.normal(size=(n, 6))
data = pd.DataFrame(values, columns=list('abcdef'))
models = {
    'the true model': 'F =~ a + b + c\nG =~ d + e + f',
    'variables in the wrong groups': 'F =~ a + b + d\nG =~ c + e + f',
    'one factor for all': 'F =~ a + b + c + d + e + f',
}
seen, right = {}, {}
for name, description in models.items():
    model = semopy.Model(description)
    model.fit(data)
    statistics = semopy.calc_stats(model).loc['Value']
    observed, k = model.vars['observed'], len(model.param_vals)
    # The normal distribution of the fitted covariance, with the means of the data.
    centered = data[observed] - data[observed].mean()
    likelihood = multivariate_normal(cov=model.calc_sigma()[0]).logpdf(centered).sum()
    seen[name], right[name] = (statistics.AIC, statistics.BIC), (2 * k - 2 * likelihood, np.log(n) * k - 2 * likelihood)
    print(f'{name}, {k} parameters, chi2 {statistics.chi2:.1f}: LogLik {statistics.LogLik:.4f}, by the definition '
          f'{likelihood:.1f}. AIC and BIC {np.round(seen[name], 2)}, by the definition {np.round(right[name], 1)}')  # fmt: skip
    assert np.isclose(statistics.LogLik, model.last_result.fun), 'this has changed'
    misfit = model.last_result.fun
    assert np.allclose(seen[name], [2 * k - 2 * misfit, np.log(n) * k - 2 * misfit]), 'this has changed'
for i, criterion in enumerate(('AIC', 'BIC')):
    best, true_best = (min(found, key=lambda name: found[name][i]) for found in (seen, right))
    print(f'smallest {criterion}: {best}, by the definition {true_best}')
    assert true_best == 'the true model' != best, 'this has changed'
PY
