#!/usr/bin/env bash
# ranx 0.3.21: rank-biased precision of graded judgments exceeds 1.
#
# Expected: the documented equation has "r_i is either 0 or 1, whether the i-th ranked document is non-relevant or relevant", and rel_lvl
# as the least judgment that counts as relevant. So the value lies between 0 and 1, and a judgment of 3 counts like one of 1.
# Seen: r_i is the judgment itself. With grades from 0 to 3 (TREC Deep Learning), a perfect ranking comes near 3, and rel_lvl=2 drops
# the ones, but still multiplies by 2 and 3. Values of graded and binary collections cannot be compared. The other metrics for binary
# judgments, such as precision and MAP, do not depend on the grade.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet ranx==0.3.21 numpy==1.26.4 pandas==2.3.3 scipy==1.17.1
"$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

from ranx import Qrels, Run, evaluate

print(f'ranx {version("ranx")}')
documents = [f'd{i}' for i in range(20)]
run = Run({'q': {name: 1 - i / 20 for i, name in enumerate(documents)}})
right, seen = 0.2 * sum(0.8**i for i in range(20)), {}
for grade in (1, 2, 3):
    qrels = Qrels({'q': dict.fromkeys(documents, grade)})
    seen[grade] = float(evaluate(qrels, run, 'rbp.80'))
    other = float(evaluate(qrels, run, 'map'))
    print(f'20 documents, all judged {grade}: rank-biased precision {seen[grade]:.3f} instead of {right:.3f}, MAP {other:.3f}')
    assert abs(seen[grade] - grade * right) < 1e-9 and abs(other - 1) < 1e-9, 'this has changed'
assert seen[3] > 2.9, 'this has changed'
PY
