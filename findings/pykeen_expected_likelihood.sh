#!/usr/bin/env bash
# pykeen 1.11.1: the expected likelihood of KG2E is larger for worse triples, and depends on the number of triples in the batch.
#
# Expected: ExpectedLikelihood is a similarity: KG2EInteraction measures "the similarity between P_e and P_r", and scores are
# larger for more plausible triples. The logarithm of the expected likelihood of two normal distributions (He et al. 2015) is
# minus one half of (m^T S^(-1) m + log det S + d log(2 pi)), with the dimension d. exact=True gives "the exact similarity".
# Seen: the result is the sum without the minus and without the half. So the best tail for a head has the lowest score, and
# rankings are reversed. In place of d stands the last dimension of the sums, which is the size of the batch. So a triple scores
# 12.5 alone, and 25.3 in a batch of 8. The other similarity, NegativeKullbackLeiblerDivergence, is right in both.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet torch==2.13.0 numpy==2.4.6 scipy==1.17.1 scikit-learn==1.9.1 pandas==3.1.1 \
  class-resolver==0.8.2 docdata==0.0.5 PyYAML==6.0.4 tqdm==4.70.1 pystow==0.10.3 more-itertools==10.8.0 requests==2.32.5 \
  tabulate==0.9.0 click==8.3.1 more-click==0.1.3
# The interactions need no other of its requirements.
"$folder/venv/bin/pip" install --quiet --no-deps pykeen==1.11.1 torch-ppr==0.0.8 torch-max-mem==0.1.6
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import numpy as np
import torch
from pykeen.nn.modules import KG2EInteraction

print(f'pykeen {version("pykeen")}')
d = 5
rng = np.random.default_rng(0)
likelihood, divergence = KG2EInteraction(similarity='ExpectedLikelihood'), KG2EInteraction()


def by_definition(h, r, t):  # the logarithm of the integral of the product of both densities
    (mean, variance), (r_mean, r_variance), (t_mean, t_variance) = h, r, t
    m, s = mean - t_mean - r_mean, variance + t_variance + r_variance
    return -0.5 * (m**2 / s + np.log(s) + np.log(2 * np.pi)).sum(-1)


def normals(count):
    return rng.normal(size=(count, d)), rng.uniform(0.1, 1, (count, d))


def scores(interaction, triples):
    return interaction(*(tuple(torch.as_tensor(x) for x in part) for part in triples)).numpy()


first = [tuple(x[:1] for x in normals(1)) for _ in range(3)]
for count in (1, 3, 8):
    triples = [tuple(np.repeat(x, count, 0) for x in part) for part in first]
    seen, other, right = scores(likelihood, triples)[0], scores(divergence, triples)[0], by_definition(*triples)[0]
    print(f'a triple in a batch of {count}: {seen:.3f}, by the definition {right:.3f}, negative divergence {other:.3f}')
    assert np.isclose(seen, -2 * right + (count - d) * np.log(2 * np.pi)), 'this has changed'
    assert np.isclose(other, scores(divergence, first)[0]), 'the definition is wrong'

h, r, t = normals(1), normals(1), normals(200)
triples = [tuple(np.repeat(x, 200, 0) for x in h), tuple(np.repeat(x, 200, 0) for x in r), t]
seen, other, right = scores(likelihood, triples), scores(divergence, triples), by_definition(*triples)
correlation = np.corrcoef(seen.argsort().argsort(), right.argsort().argsort())[0, 1]
print(f'200 tails: rank correlation to the definition {correlation:.3f}, of the negative divergence '
      f'{np.corrcoef(other.argsort().argsort(), right.argsort().argsort())[0, 1]:.3f}')  # fmt: skip
print(f'the best tail has the rank {1 + (seen > seen[right.argmax()]).sum()} of 200')
assert np.isclose(correlation, -1) and seen.argmin() == right.argmax(), 'this has changed'
assert np.corrcoef(other, right)[0, 1] > 0.3, 'the definition is wrong'
PY
