#!/usr/bin/env bash
# geoopt 0.5.1: the Finsler distance of minimum entropy on Siegel spaces has weights 0, 2, ..., 2n - 2 instead of 2, 4, ..., 2n.
#
# Expected: the distance is the sum of 2 (n + 1 - i) v_i, says the documentation, with v the vector-valued distance. These are the
# coefficients of the sum of the positive roots of the symplectic group, where v_1 is the largest: the largest has weight 2n, the smallest 2.
# The documentation sorts v in ascending order, which would give the smallest the weight 2n.
# Seen: the largest has weight 2n - 2, the smallest has weight 0, and does not count. Neither order gives this: the range of the weights is
# one too far. For n = 2 the distance is twice the largest, which is the Finsler distance "infinity" again, twice.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet geoopt==0.5.1 torch==2.13.0 numpy==2.4.6 scipy==1.17.1
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import numpy as np
import torch
from geoopt.manifolds.siegel import UpperHalf
from geoopt.manifolds.siegel.vvd_metrics import SiegelMetricType

print(f'geoopt {version("geoopt")}')
torch.set_default_dtype(torch.float64)


def distance(v, kind):
    """In the upper half space, from i times the identity to i times a diagonal matrix, of which v are the logarithms."""
    n = len(v)
    ends = [torch.complex(torch.zeros(n, n), torch.diag(torch.tensor(d)))[None] for d in (np.ones(n), np.exp(v))]
    return UpperHalf(metric=kind, rank=n).dist(*ends).item()


for v in (np.array([0.3, 1.0]), np.array([0.9, 1.0]), np.array([0.1, 0.5, 1.2]), np.array([0.4, 0.5, 1.2])):
    n = len(v)
    weights = 2 * (n + 1 - np.arange(1, n + 1))
    right, other = weights @ v[::-1], weights @ v
    seen = distance(v, SiegelMetricType.FINSLER_MINIMUM)
    print(f'v = {v}: {seen:.2f}, by the formula {right:.2f} with the largest first, {other:.2f} with the smallest first')
    assert np.isclose(distance(v, SiegelMetricType.FINSLER_ONE), v.sum()), 'this has changed'
    assert np.isclose(distance(v, SiegelMetricType.RIEMANNIAN), np.linalg.norm(v)), 'this has changed'
    assert np.isclose(seen, 2 * np.arange(n) @ v) and not np.isclose(seen, [right, other]).any(), 'this has changed'
    if n == 2:
        assert np.isclose(seen, 2 * distance(v, SiegelMetricType.FINSLER_INFINITY)), 'this has changed'
PY
