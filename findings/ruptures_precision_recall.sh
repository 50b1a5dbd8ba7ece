#!/usr/bin/env bash
# ruptures 1.1.10: precision_recall misses true change points which have an estimate within the margin.
#
# Expected: the documented true positives: "true change points for which there is an estimated one at less than M samples".
# Precision and recall are their number over those of estimated and of true change points.
# Seen: a true change point takes all estimates within its margin, and the next one gets none of them. With true change points
# at 100 and 108, and estimates at 99 and 107, precision and recall are 1/2 instead of 1. The result also depends on the
# direction of time: for the reversed series, another number comes out. A larger margin can give a lower recall.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet ruptures==1.1.10 numpy==2.4.6 scipy==1.17.1
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import numpy as np
from ruptures.metrics import precision_recall

print(f'ruptures {version("ruptures")}')


def by_definition(true, estimated, margin):
    hits = sum(any(abs(t - e) < margin for e in estimated[:-1]) for t in true[:-1])
    return hits / (len(estimated) - 1), hits / (len(true) - 1)


true, estimated = [100, 108, 300, 500], [99, 107, 301, 500]
for margin in (2, 5, 10, 20):
    seen, right = precision_recall(true, estimated, margin), by_definition(true, estimated, margin)
    print(f'margin {margin}: precision and recall {np.round(seen, 3)}, by the definition {np.round(right, 3)}')
    assert right == (1, 1)
    assert np.allclose(seen, 1 if margin < 8 else 2 / 3), 'this has changed'

forward = [100, 108, 500], [104, 115, 120, 500]
backward = [[500 - t for t in points[-2::-1]] + [500] for points in forward]
seen = [precision_recall(*points, 10) for points in (forward, backward)]
right = [by_definition(*points, 10) for points in (forward, backward)]
print(f'forward {np.round(seen[0], 3)}, reversed {np.round(seen[1], 3)}, by the definition {np.round(right[0], 3)} for both')
assert right[0] == right[1] == (2 / 3, 1)
assert seen[0] != seen[1] or seen[0] != right[0], 'this has changed'
PY
