#!/usr/bin/env bash
# scikit-fda 0.10.1: hotelling_t2 takes roots of the entries of the Gram matrix, and not the root of the matrix.
#
# Expected: the statistic is documented as a multiple of m^T W^(1/2) (W^(1/2) K W^(1/2))^+ W^(1/2) m. m is the difference of
# the means, K the pooled covariance, (.)^+ "the Moore-Penrose pseudo-inverse", and W "is Gram matrix". As a matrix, W^(1/2)
# has the square W. Then the statistic belongs to the functions, and not to their basis: the same functions in an orthonormal
# basis have the same statistic.
# Seen: the code has np.sqrt(gram_matrix), whose square is another matrix. In an orthonormal basis, as a Fourier basis, both
# are the same. In a B-spline basis with fewer curves than basis functions, as is usual with functional data, the statistic is
# another one, and sometimes several times as large. The permutation test takes its p-value from it. With more curves than
# basis functions, the root cancels out.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet scikit-fda==0.10.1 multimethod==1.12 numpy==2.4.6 scipy==1.17.1 pandas==2.3.3 scikit-learn==1.9.1 \
    matplotlib==3.11.2 numba==0.68.1 fdasrsf==2.7.3 findiff==0.16.0 dcor==0.7 rdata==1.1.0 xarray==2026.9.0
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import numpy as np
from skfda import FDataBasis
from skfda.inference.hotelling import hotelling_t2
from skfda.representation.basis import BSplineBasis, FourierBasis

print(f'scikit-fda {version("scikit-fda")}')
rng = np.random.default_rng(0)


def by_definition(first, second, gram):
    values, vectors = np.linalg.eigh(gram)
    root = vectors * np.sqrt(values) @ vectors.T
    assert np.allclose(root @ root, gram)
    n1, n2 = len(first), len(second)
    pooled = ((n1 - 1) * np.cov(first.T) + (n2 - 1) * np.cov(second.T)) / (n1 + n2 - 2)
    m = root @ (first.mean(0) - second.mean(0))
    return n1 * n2 / (n1 + n2) * m @ np.linalg.pinv(root @ pooled @ root, rcond=1e-10) @ m


for basis in (FourierBasis((0, 1), n_basis=9), BSplineBasis((0, 1), n_basis=10)):
    for n in (4, 30):
        first, second = rng.normal(size=(n, basis.n_basis)), rng.normal(size=(n, basis.n_basis)) + 0.3
        gram = basis.gram_matrix()
        seen, right = hotelling_t2(FDataBasis(basis, first), FDataBasis(basis, second)), by_definition(first, second, gram)
        # Coefficients in an orthonormal basis of the same space.
        change = np.linalg.cholesky(gram)
        same = by_definition(first @ change, second @ change, np.eye(basis.n_basis))
        print(f'{type(basis).__name__}, {n} and {n} curves, {basis.n_basis} functions: T^2 {seen:.3f}, by the definition '
              f'{right:.3f}, in an orthonormal basis {same:.3f}')  # fmt: skip
        assert np.isclose(right, same)
        assert np.isclose(seen, right) == (n == 30 or isinstance(basis, FourierBasis)), 'this has changed'
        assert np.isclose(seen, right) or abs(np.log(seen / right)) > 0.2, 'this has changed'
PY
