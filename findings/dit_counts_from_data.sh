#!/usr/bin/env bash
# dit 2.3: counts_from_data with futures counts nothing: all conditional counts are 0.
#
# Expected: counts_from_data(data, hLength, fLength) "returns conditional counts": the rows of cCounts "correspond to the
# observed histories", of hLength symbols, and the columns to the futures, of fLength symbols. hCounts is "the count of each
# history word".
# Seen: the list of histories holds whole words, of hLength + fLength symbols. No history has such a name, so that each of their
# counts is 0, and hCounts as well. Only fLength = 0, which get_counts uses, is right. This is the code without Cython, which
# the wheel of PyPI has alone.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet dit==2.3 numpy==2.4.6 scipy==1.17.1 networkx==3.6.1 pandas==3.1.1 xarray==2026.9.0 \
  boltons==26.2.0 debtcollector==3.1.0 lattices==0.5.1 loguru==0.7.3 PLTable==1.1.0
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from collections import Counter
from importlib.metadata import version
from itertools import product

import numpy as np
from dit.inference.counts import counts_from_data

print(f'dit {version("dit")}')
data = np.random.default_rng(0).choice(2, 1000, p=[0.7, 0.3]).tolist()
for history, future in ((1, 0), (1, 1), (2, 1), (1, 2)):
    words = Counter(tuple(data[i : i + history + future]) for i in range(len(data) - history - future + 1))
    right = np.array([[words[h + f] for f in product((0, 1), repeat=future)] for h in product((0, 1), repeat=history)])
    histories, counts, totals, alphabet = counts_from_data(data, history, future)
    print(f'histories of {history}, futures of {future}: histories {histories}, sum of all counts {counts.sum():.0f}, '
          f'right {right.sum()}')  # fmt: skip
    print(f'    right counts: {right.tolist()}')
    assert right.sum() == len(data) - history - future + 1, 'the definition is wrong'
    if future == 0:
        assert np.array_equal(counts, right) and len(histories[0]) == history, 'this has changed'
    else:
        assert not counts.any() and not totals.any() and len(histories[0]) == history + future, 'this has changed'
PY
