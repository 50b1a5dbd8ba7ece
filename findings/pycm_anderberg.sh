#!/usr/bin/env bash
# pycm 4.6: the Anderberg similarity takes a sum which is of no row or column, and is negative, and changes if transposed.
#
# Expected: Anderberg's D, from Anderberg's book and the Abydos documentation. It is (t1 - t2) / (2 n). The sum t1 has the
# largest counts of both rows and of both columns, and t2 has the larger row total and the larger column total. It is the mean
# reduction of errors when one class predicts the other. So it is at least 0, and the same for the transposed matrix.
# Seen: t2 has max(TP + FP, FP + TN) in the place of max(TP + FN, FP + TN), so that a row total is compared with a column total.
# The numerator of GoodmanKruskalLambda in the same module has the same t1 - t2, and is right.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet pycm==4.6 art==6.5 numpy==2.4.6
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import numpy as np
from pycm import ConfusionMatrix, DistanceType

print(f'pycm {version("pycm")}')


def by_definition(table):
    table = np.array(table)
    first = table.max(0).sum() + table.max(1).sum()
    second = table.sum(0).max() + table.sum(1).max()
    return (first - second) / (2 * table.sum()), (first - second) / (2 * table.sum() - second)


results = {}
for tp, fp, fn, tn in ((40, 30, 5, 25), (40, 5, 30, 25), (40, 20, 20, 30), (10, 60, 5, 25), (10, 5, 60, 25)):
    matrix = ConfusionMatrix(matrix={1: {1: tp, 0: fn}, 0: {1: fp, 0: tn}})
    assert (matrix.TP[1], matrix.FP[1], matrix.FN[1], matrix.TN[1]) == (tp, fp, fn, tn)
    seen, other = matrix.distance(DistanceType.Anderberg)[1], matrix.distance(DistanceType.GoodmanKruskalLambda)[1]
    right, ratio = by_definition([[tp, fp], [fn, tn]])
    results[tp, fp, fn, tn] = (seen, right)
    print(f'TP {tp}, FP {fp}, FN {fn}, TN {tn}: {seen:.3f}, by the definition {right:.3f}. Lambda {other:.3f}, {ratio:.3f}')
    first = max(tp, fp) + max(fn, tn) + max(tp, fn) + max(fp, tn)
    second = max(tp + fp, fp + tn) + max(tp + fp, fn + tn)
    assert np.isclose(seen, (first - second) / (2 * (tp + fp + fn + tn))), 'this has changed'
    assert np.isclose(other, ratio) and right >= 0
assert min(seen for seen, _ in results.values()) < -0.01, 'this has changed'
assert abs(results[40, 30, 5, 25][0] - results[40, 5, 30, 25][0]) > 0.05, 'this has changed'
assert np.isclose(results[40, 30, 5, 25][1], results[40, 5, 30, 25][1])
PY
