#!/usr/bin/env bash
# dit 2.3: the conditional lautum information is not 0 for conditionally independent variables, as it takes p(x) p(y).
#
# Expected: the lautum information is the Kullback-Leibler divergence of the product of the marginals from the joint
# distribution, and crvs are "the random variables to condition on". So L[X : Y | Z] is the mean over z of the lautum
# information of p(x, y | z), with the product p(x | z) p(y | z). It is 0 if X and Y are independent given Z, as the mutual
# information is.
# Seen: the product is p(x) p(y) p(z), with the marginals of the whole distribution, which forgets that X and Y depend on Z. A
# noisy copy X of Z, and another one Y, have 1.47 bits, where the right number is 0. Without crvs, it is right.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet dit==2.3 numpy==2.4.6 scipy==1.17.1 networkx==3.6.1 pandas==3.1.1 xarray==2026.9.0 \
  boltons==26.2.0 debtcollector==3.1.0 lattices==0.5.1 loguru==0.7.3 PLTable==1.1.0
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version
from itertools import product

import numpy as np
from dit import Distribution
from dit.multivariate import total_correlation
from dit.other import lautum_information

print(f'dit {version("dit")}')


def lautum(p):
    product = p.sum(1, keepdims=True) * p.sum(0, keepdims=True)
    return (product * np.log2(product / p)).sum()


copy = np.array([[0.9, 0.1], [0.1, 0.9]])
rng = np.random.default_rng(0)
copies = np.einsum('z,zx,zy->xyz', [0.5, 0.5], copy, copy)
tables = {'two noisy copies of z': copies, 'random': rng.dirichlet(np.ones(8)).reshape(2, 2, 2)}
for name, p in tables.items():
    distribution = Distribution([''.join(o) for o in product('01', repeat=3)], p.ravel())
    z = p.sum((0, 1))
    right = sum(z[k] * lautum(p[:, :, k] / z[k]) for k in range(2))
    slices = [Distribution(['00', '01', '10', '11'], (p[:, :, k] / z[k]).ravel()) for k in range(2)]
    mean = sum(z[k] * lautum_information(slices[k]) for k in range(2))
    seen, mutual = lautum_information(distribution, [[0], [1]], [2]), total_correlation(distribution, [[0], [1]], [2])
    print(f'{name}: {seen:.4f}, mean over z of the package {mean:.4f}, by the definition {right:.4f}; mutual {mutual:.4f}')
    assert np.isclose(mean, right), 'the definition is wrong'
    assert not np.isclose(seen, right, atol=0.01), 'this has changed'
    assert name == 'random' or (abs(right) < 1e-12 and abs(mutual) < 1e-12 and seen > 0.5), 'this has changed'
    whole = p.sum(2)
    assert np.isclose(lautum_information(distribution, [[0], [1]]), lautum(whole)), 'the definition is wrong'
PY
