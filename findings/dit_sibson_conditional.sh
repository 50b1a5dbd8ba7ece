#!/usr/bin/env bash
# dit 2.3: the conditional Sibson mutual informations are not 0 for conditionally independent variables, and may be negative.
#
# Expected: sibson_conditional_mutual_information_y_given_z is the least Renyi divergence of P_XYZ from P_X|Z Q_Y|Z P_Z over
# Q_Y|Z, and the form "z" that from P_X|Z P_Y|Z Q_Z over Q_Z (Esposito et al., definitions 3 and 4). Both are never negative,
# and 0 if X and Y are independent given Z.
# Seen: the table of each z is the part of the joint distribution, which sums to p(z), and is not divided by p(z). The measure
# of order 2 of conditionally independent variables is minus the entropy of Z, and that of order 1 is not the conditional mutual
# information. The form "z" is right for the orders 1 and 2 alone. If Z is constant, both are right.
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
from dit.other.sibson_mutual_information import sibson_conditional_mutual_information_y_given_z as y_given_z
from dit.other.sibson_mutual_information import sibson_conditional_mutual_information_z as form_z

print(f'dit {version("dit")}')
rng = np.random.default_rng(0)
p_z, x_z, y_z = np.array([0.25, 0.75]), rng.dirichlet([1, 1], 2), rng.dirichlet([1, 1, 1], 2)
tables = {
    'independent given z': np.einsum('z,zx,zy->xyz', p_z, x_z, y_z),
    'dependent': rng.dirichlet(np.ones(12)).reshape(2, 3, 2),
    'constant z': rng.dirichlet(np.ones(6)).reshape(2, 3, 1),
}


def renyi(p, q, order):
    return (p * np.log2(p / q)).sum() if order == 1 else np.log2((p**order * q ** (1 - order)).sum()) / (order - 1)


def least(p, order):  # the divergences at their minima over Q, and a check that other Q are no better
    z = p.sum((0, 1))
    x, y = p.sum(1) / z, p.sum(0) / z
    q_y = ((p / z) ** order * x[:, None] ** (1 - order)).sum(0) ** (1 / order)
    q_z = z * ((p / z) ** order * x[:, None] ** (1 - order) * y ** (1 - order)).sum((0, 1)) ** (1 / order)
    q_y, q_z = q_y / q_y.sum(0), q_z / q_z.sum()
    first = renyi(p, x[:, None] * q_y * z, order)
    second = renyi(p, x[:, None] * y * q_z, order)
    for _ in range(200):
        other_y, other_z = rng.dirichlet(np.ones(len(y)), len(z)).T, rng.dirichlet(np.ones(len(z)))
        assert first <= renyi(p, x[:, None] * other_y * z, order) + 1e-12, 'the minimum is wrong'
        assert second <= renyi(p, x[:, None] * y * other_z, order) + 1e-12, 'the minimum is wrong'
    return first, second


for name, p in tables.items():
    outcomes = [''.join(map(str, o)) for o in product(*map(range, p.shape))]
    distribution = Distribution(outcomes, p.ravel())
    for order in (0.5, 1, 2, 3):
        first, second = least(p, order)
        seen = y_given_z(distribution, [0], [1], [2], order), form_z(distribution, [0], [1], [2], order)
        print(f'{name}, order {order}: y given z {seen[0]:.4f} instead of {first:.4f}, z {seen[1]:.4f} instead of {second:.4f}')
        assert np.isclose(seen[0], first, atol=1e-9) == (name == 'constant z'), 'this has changed'
        assert np.isclose(seen[1], second, atol=1e-9) == (name == 'constant z' or order in (1, 2)), 'this has changed'
        if name == 'independent given z':
            assert abs(first) < 1e-9 and abs(second) < 1e-9, 'the definition is wrong'
            assert order != 2 or np.isclose(seen[0], (p_z * np.log2(p_z)).sum()), 'this has changed'
PY
