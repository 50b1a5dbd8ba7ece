#!/usr/bin/env bash
# textdistance 4.6.3: the Smith-Waterman score is that of alignments which end at the ends of both texts.
#
# Expected: "Instead of looking at the total sequence, the Smith-Waterman algorithm compares segments of all possible lengths
# and optimizes the similarity measure" (SmithWaterman). So the score is the largest entry of its matrix, as in the cited
# article, which traces alignments back from there.
# Seen: __call__ returns the last entry of the matrix. Text after the common segment lowers the score: "abcd" and "abcdzzzz"
# have a score of 0, and 4 is right. Text before it does not: "zzzzabcd" has a score of 4.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet textdistance==4.6.3 numpy==2.4.6
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import numpy as np
import textdistance

print(f'textdistance {version("textdistance")}')


def by_definition(a, b, gap=1):
    matrix = np.zeros((len(a) + 1, len(b) + 1))
    for i in range(1, len(a) + 1):
        for j in range(1, len(b) + 1):
            same = matrix[i - 1, j - 1] + (a[i - 1] == b[j - 1])
            matrix[i, j] = max(0, same, matrix[i - 1, j] - gap, matrix[i, j - 1] - gap)
    return matrix.max(), matrix[-1, -1]


for a, b in (('abcd', 'zzzzabcd'), ('abcd', 'abcdzzzz'), ('GATTACA', 'ATTAC'), ('xxabc', 'abcyy'), ('hello', 'hello!!')):
    seen, (right, last) = textdistance.smith_waterman(a, b), by_definition(a, b)
    print(f'{a} and {b}: {seen}, by the definition {right}')
    assert seen == last and (seen == right) == (b == 'zzzzabcd'), 'this has changed'
PY
