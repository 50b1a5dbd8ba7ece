#!/usr/bin/env bash
# causal-learn 0.1.4.8: the BDeu score of two variables is infinite or NaN, and GES with it never finds an edge between them.
#
# Expected: scores are finite. With 1000 samples, the score of two strongly dependent variables is larger with the edge, as the likelihood
# of BDeu is.
# Seen: the prior of the structure takes 1 / (number of other variables) for the probability of a parent. For two variables, this is 1. The
# score without a parent has the logarithm of 0, minus infinity, and the score with it 0 times this, NaN. No comparison with NaN is true:
# GES returns no edge and the score minus infinity, although both variables are the same in 90% of the samples. There is no error. With a
# third variable, it finds the edge. The scores are right with structure_prior=0.5, but ges does not pass parameters to this score.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet causal-learn==0.1.4.8 numpy==2.4.6 scipy==1.17.1 networkx==3.6.1 pandas==3.1.1 \
  scikit-learn==1.9.1 statsmodels==0.15.0 matplotlib==3.11.2
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import numpy as np
from causallearn.score.LocalScoreFunction import local_score_BDeu
from causallearn.search.ScoreBased.GES import ges
from scipy.special import gammaln

print(f'causal-learn {version("causal-learn")}')
rng = np.random.default_rng(0)
x = rng.integers(0, 2, 1000)
y = np.where(rng.random(1000) < 0.9, x, 1 - x)
two, three = np.column_stack([x, y]), np.column_stack([x, y, rng.integers(0, 2, 1000)])


def likelihood(child, parent=None):
    """Of binary variables, by the definition of BDeu with a sample size of 1, without a prior of the structure."""
    parts = [child] if parent is None else [child[parent == value] for value in (0, 1)]
    a, score = 1 / len(parts), 0
    for part in parts:
        counts = np.bincount(part, minlength=2)
        score += gammaln(a) - gammaln(len(part) + a) + (gammaln(counts + a / 2) - gammaln(a / 2)).sum()
    return score


def adjacent(data, **options):
    result = ges(data, score_func='local_score_BDeu', **options)
    return bool(result['G'].graph[0, 1]), float(np.squeeze(result['score']))


print(f'likelihoods of BDeu: without the edge {likelihood(x):.1f}, with it {likelihood(x, y):.1f}')
for name, data in (('two variables', two), ('three variables', three)):
    scores = local_score_BDeu(data, 0, []), local_score_BDeu(data, 0, [1])
    print(f'{name}: score without the edge {scores[0]:.1f}, with it {scores[1]:.1f}. Edge found, score of the result: {adjacent(data)}')
    if data is two:
        assert scores[0] == -np.inf and np.isnan(scores[1]) and adjacent(data) == (False, -np.inf), 'this has changed'
    else:
        assert np.isclose(scores[1] - scores[0], likelihood(x, y) - likelihood(x)) and adjacent(data)[0], 'this has changed'

parameters = {'sample_prior': 1, 'structure_prior': 0.5, 'r_i_map': {0: 2, 1: 2}}
scores = [local_score_BDeu(two, 0, parents, parameters) for parents in ([], [1])]
found = adjacent(two, parameters=parameters)
print(f'two variables, structure_prior=0.5: score without the edge {scores[0]:.1f}, with it {scores[1]:.1f}. By ges: {found}')
assert np.isclose(scores[1] - scores[0], likelihood(x, y) - likelihood(x)) and found == (False, -np.inf), 'this has changed'
PY
