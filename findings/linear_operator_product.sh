#!/usr/bin/env bash
# linear_operator 0.6.1: the elementwise product of two triangular operators, or of two permutations, is another matrix.
#
# Expected: documented as "multiplies the matrix [...] elementwise the matrix by another matrix". The product of a triangular matrix
# with itself has the squares of its entries, and the product of two dense operators is right for every matrix.
# Seen: other kinds of operators are first replaced by roots R R^T, which exist only for positive semidefinite matrices. Nothing
# checks this. The product of a triangular matrix is a full symmetric one, and the identity times a permutation is not zero where it
# should be. At most a warning about a Cholesky decomposition appears. And torch.exp of IdentityLinearOperator is the identity,
# neither the elementwise exponential nor the exponential of the matrix (torch.exp of the same DiagLinearOperator gives e).
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet torch==2.13.0 linear-operator==0.6.1
cd "$folder"
"$folder/venv/bin/python" -W ignore - <<'PY'
import linear_operator
import torch
from linear_operator import operators

torch.manual_seed(0)
print(f'linear_operator {linear_operator.__version__}')
lower = torch.tensor([[1.0, 0.0], [2.0, 3.0]])
seen = {}
for name, operator in (
    ('dense', operators.DenseLinearOperator(lower)),
    ('triangular', operators.TriangularLinearOperator(lower)),
    ('permutation', operators.PermutationLinearOperator(torch.tensor([1, 2, 0]))),
):
    right = operator.to_dense() * operator.to_dense()
    seen[name] = ((operator * operator).to_dense() - right).abs().max().item()
    print(f'{name}: product {(operator * operator).to_dense().tolist()}, entries {right.tolist()}')
exp = [torch.exp(kind).to_dense()[0, 0].item() for kind in (
    operators.IdentityLinearOperator(3), operators.DiagLinearOperator(torch.ones(3)))]  # fmt: skip
print(f'exp of the identity: IdentityLinearOperator {exp[0]}, DiagLinearOperator {exp[1]:.4f}')
assert seen['dense'] == 0 and seen['triangular'] > 0.1 and seen['permutation'] > 0.1, 'this has changed'
assert exp[0] == 1.0 and abs(exp[1] - 2.7182817) < 1e-5, 'this has changed'
PY
