#!/usr/bin/env bash
# spreg 1.9.0: the impacts of a spatial lag model with spat_impacts='power' stop after the second power of the weights on a rook lattice.
#
# Expected: 'power' sums rho^k tr(W^k) / n over k, until the terms are below mtol, 1e-8. This approximates the average direct impact of
# 'full', which inverts I - rho W (LeSage and Pace 2009).
# Seen: the sum ends at the first term which is not above mtol. In a graph without odd cycles, such as a rook lattice, a street grid or a
# tree, tr(W^3) is 0: the sum ends there. The direct impact is 1.23 instead of 1.59 for rho = 0.9. For negative rho, all odd terms are
# negative or 0, and it ends there for all weights. The indirect impact takes the error over. There is no warning. For rho > 0 and a queen
# lattice it is right.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet spreg==1.9.0 libpysal==4.14.1 numpy==2.4.6 scipy==1.17.1 pandas==3.1.1 scikit-learn==1.9.1 \
  geopandas==1.2.0 shapely==2.2.0 networkx==3.6.1
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import numpy as np
from libpysal.weights import lat2W
from spreg import GM_Lag
from spreg.sputils import spmultiplier

print(f'spreg {version("spreg")}')
for name, rook in (('rook', True), ('queen', False)):
    w = lat2W(9, 9, rook=rook)
    w.transform = 'r'
    dense = w.full()[0]
    for rho in (0.9, 0.6, -0.6):
        powers, terms = np.eye(81), []
        for k in range(500):
            terms.append(rho**k * np.trace(powers) / 81)
            powers = powers @ dense
        full, power = (spmultiplier(w, rho, method) for method in ('full', 'power'))
        print(f'{name}, rho {rho}: direct {full["adi"]:.4f} with full, {power["adi"]:.4f} with power, which ended at {power["pow"]}. '
              f'Sums of 3 and of 500 terms {sum(terms[:3]):.4f}, {sum(terms):.4f}. First terms {np.round(terms[1:6], 4)}')  # fmt: skip
        assert np.isclose(sum(terms), full['adi']), 'the definition is wrong'
        if name == 'queen' and rho > 0:
            assert np.isclose(power['adi'], full['adi'], atol=1e-6), 'this has changed'
        else:
            assert power['pow'] == 3 and np.isclose(power['adi'], sum(terms[:4])), 'this has changed'
            assert abs(power['adi'] - full['adi']) > 0.005, 'this has changed'

w = lat2W(9, 9)
w.transform = 'r'
rng = np.random.default_rng(0)
x = rng.normal(size=(81, 2))
y = np.linalg.solve(np.eye(81) - 0.8 * w.full()[0], x @ [[2.0], [-1.0]] + rng.normal(size=(81, 1)))
models = {method: GM_Lag(y, x, w=w, spat_impacts=method) for method in ('full', 'power')}
rho = models['full'].betas[-1, 0]
direct = {method: model.sp_multipliers[method][0] for method, model in models.items()}
inverse = np.trace(np.linalg.inv(np.eye(81) - rho * w.full()[0])) / 81
print(f'GM_Lag, direct impacts for rho {rho:.3f}: full {direct["full"]:.4f}, power {direct["power"]:.4f}, by the inverse {inverse:.4f}')
assert np.isclose(direct['full'], inverse) and direct['full'] - direct['power'] > 0.1, 'this has changed'
PY
