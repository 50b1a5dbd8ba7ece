#!/usr/bin/env bash
# mapclassify 2.10.0: MaximumBreaks does not use mindiff.
#
# Expected: mindiff of MaximumBreaks is "the minimum difference between class breaks". So values whose difference is smaller are
# not separated by a break.
# Seen: mindiff is stored, and no code reads it. The bins are the same for all mindiff, and breaks are between values which are
# closer than it.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet mapclassify==2.10.0 numpy==2.4.6 scipy==1.17.1 pandas==3.1.1 networkx==3.6.1 \
    scikit-learn==1.8.0
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import numpy as np
from mapclassify import MaximumBreaks

print(f'mapclassify {version("mapclassify")}')
values = np.array([1.0, 2.0, 3.0, 10.0, 10.5, 11.2, 50.0, 51.3, 100.0])
plain = MaximumBreaks(values, k=5).bins
for mindiff in (0, 5, 20, 45):
    result = MaximumBreaks(values, k=5, mindiff=mindiff)
    assert result.mindiff == mindiff
    gaps = [float(values[values > cut].min() - values[values <= cut].max()) for cut in result.bins[:-1]]
    breaks = np.diff(result.bins)
    allowed = int((np.diff(values) >= mindiff).sum()) if mindiff else 4
    print(f'mindiff {mindiff}: bins {result.bins}, gaps at the breaks {np.round(gaps, 2)}, smallest difference of breaks '
          f'{breaks.min():.2f}. Gaps of at least mindiff: {min(allowed, 4)}')  # fmt: skip
    assert np.array_equal(result.bins, plain) and min(gaps) < 2, 'this has changed'
PY
