#!/usr/bin/env bash
# textdistance 4.6.3: the symmetric Tversky index takes the sizes of the sets for those of their differences.
#
# Expected: Tversky cites the article on the Tversky index. There, the variant with a bias is c / (c + beta (alpha a + (1 -
# alpha) b)), where c is the size of the intersection plus the bias, and a and b are the smaller and the larger of |X - Y| and
# |Y - X|. With alpha = 0.5, beta = 1 and no bias, it is the Dice coefficient.
# Seen: with bias, which may be 0, a and b are the smaller and the larger of |X| and |Y|. For alpha = 0.5, beta = 1 and no
# bias, sets which share 9 of 10 elements have 0.47, and 0.9 is right. Without bias, all is as in the article.
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


def by_definition(x, y, alpha, beta, bias):
    x, y = set(x), set(y)
    c, (a, b) = len(x & y) + bias, sorted([len(x - y), len(y - x)])
    return c / (c + beta * (alpha * a + (1 - alpha) * b))


for x, y in (('abcdefghij', 'abcdefghik'), ('abcde', 'abxyzw'), ('abc', 'abcdef')):
    dice = textdistance.sorensen(x, y)
    assert np.isclose(by_definition(x, y, 0.5, 1, 0), dice)
    for alpha, beta, bias in ((0.5, 1, 0), (0.2, 1, 0), (0.5, 2, 1)):
        seen, right = textdistance.Tversky(ks=[alpha, beta], bias=bias)(x, y), by_definition(x, y, alpha, beta, bias)
        print(f'{x}, {y}: alpha {alpha}, beta {beta}, bias {bias}: {seen:.3f}, by the definition {right:.3f}, Dice {dice:.3f}')
        a, b = sorted([len(x), len(y)])
        c = len(set(x) & set(y)) + bias
        assert np.isclose(seen, c / (c + beta * (alpha * a + (1 - alpha) * b))), 'this has changed'
        assert seen < 0.8 * right, 'this has changed'
PY
