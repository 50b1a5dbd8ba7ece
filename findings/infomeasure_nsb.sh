#!/usr/bin/env bash
# infomeasure 0.6.3: the NSB entropy is not the documented integral, and the Bayesian entropy leaves out empty bins.
#
# Expected: the documented NSB estimate is an integral over xi from 0 to ln K, of rho(xi | n) and the mean entropy for
# beta(xi). rho has the product of Gamma(n_i + beta) / Gamma(beta) over all K bins. In terms of beta, that is an integral from
# 0 to infinity. In both estimates, K is "the support size", so that bins without data have n_i = 0. The Bayesian probabilities
# are (n_k + alpha) / (N + K alpha), and sum to 1.
# Seen: the NSB integral is over beta, but ends at ln K, which is the limit of xi. Each factor of the product is raised to the
# power n_i, so that frequent values count far too much. For counts of 40, 5, 3 and 2, the estimate is 0.81 nats, and 0.74 is
# right. With K given, both estimates leave out the bins without data. So probabilities do not sum to 1, and a larger support
# lowers the Bayesian entropy.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet infomeasure==0.6.3 numpy==2.4.6 scipy==1.17.1 pandas==3.1.1 sparse==0.19.3 \
  numba==0.68.1
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import infomeasure as im
import numpy as np
from scipy.special import digamma, gammaln, polygamma

print(f'infomeasure {version("infomeasure")}')


def log_rho(beta, counts, power):
    kappa, total = counts.size * beta, counts.sum()
    exponents = counts if power else np.ones(counts.size)
    return gammaln(kappa) - gammaln(total + kappa) + (exponents * (gammaln(counts + beta) - gammaln(beta))).sum()


def mean_entropy(beta, counts):
    alpha = counts + beta
    return digamma(alpha.sum() + 1) - (alpha * digamma(alpha + 1)).sum() / alpha.sum()


def integral(counts, end=np.inf, power=False):
    beta = np.exp(np.linspace(-14, min(14, np.log(end)), 8001))  # a uniform grid of ln beta
    log_weights = np.array([log_rho(b, counts, power) for b in beta])
    slope = counts.size * polygamma(1, counts.size * beta + 1) - polygamma(1, beta + 1)  # d xi / d beta
    weights = np.exp(log_weights - log_weights.max()) * slope * beta
    return (weights * np.array([mean_entropy(b, counts) for b in beta])).sum() / weights.sum()


for counts, bins in (([40, 5, 3, 2], 4), ([5, 3, 1, 1], 4), ([14, 10, 13, 13], 4), ([1, 1, 1, 2], 8)):
    data, parts = np.repeat(np.arange(len(counts)), counts), np.array(counts) / sum(counts)
    full = np.append(counts, np.zeros(bins - len(counts)))
    seen, right = float(im.entropy(data, approach='nsb', K=bins)), integral(full)
    print(f'counts {counts}, {bins} bins: NSB {seen:.4f} nats, by the documented integral {right:.4f}, '
          f'plug-in {-(parts * np.log(parts)).sum():.4f}')  # fmt: skip
    assert abs(seen - right) > 0.01, 'this has changed'
    if bins == len(counts):
        assert np.isclose(seen, integral(full, end=np.log(bins), power=True), atol=1e-3), 'this has changed'

for bins in (4, 10, 40):
    data = np.repeat(np.arange(4), [5, 3, 1, 1])
    parts = (np.append([5, 3, 1, 1], np.zeros(bins - 4)) + 1) / (10 + bins)
    seen, right = float(im.entropy(data, approach='bayes', alpha=1.0, K=bins)), -(parts * np.log(parts)).sum()
    print(f'Bayesian entropy of counts [5, 3, 1, 1], {bins} bins: {seen:.4f}, by the documented probabilities {right:.4f}')
    assert np.isclose(parts.sum(), 1) and np.isclose(seen, right) == (bins == 4), 'this has changed'
    assert bins == 4 or seen < 0.65 * right, 'this has changed'

# The independent check of the integral: posterior draws, weighted over a grid of beta.
rng = np.random.default_rng(0)
counts, beta = np.array([40.0, 5, 3, 2]), np.exp(np.linspace(-8, 6, 57))
log_weights = np.array([log_rho(b, counts, False) for b in beta])
weights = np.exp(log_weights - log_weights.max()) * (4 * polygamma(1, 4 * beta + 1) - polygamma(1, beta + 1)) * beta
draws = np.array([-(p * np.log(np.maximum(p, 1e-300))).sum(1).mean() for p in (rng.dirichlet(counts + b, 4000) for b in beta)])
print(f'by random draws {(weights * draws).sum() / weights.sum():.3f}')
assert abs((weights * draws).sum() / weights.sum() - integral(counts)) < 0.01
PY
