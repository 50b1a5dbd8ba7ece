#!/usr/bin/env bash
# pathpy 2.2.0: connected_components gives one component several times and leaves out others, and changes from call to call.
#
# Expected: the connected components of a network, documented as "based on the spectrum of the Laplacian matrix": each node belongs to
# exactly one.
# Seen: each eigenvector of the eigenvalue 0 is taken for one component, by its smallest entries. But if there are several components, the
# solver returns any basis of the space of these vectors, from a random start. Two cycles are found as one cycle twice, or as two.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet pathpy==2.2.0 numpy==1.26.4 scipy==1.13.1
"$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import pathpy
from pathpy.algorithms.components import connected_components

print(f'pathpy {version("pathpy")}')
pathpy.utils.Log.set_min_severity(pathpy.utils.Severity.ERROR)
parts = [range(0, 5), range(5, 11), range(11, 18), range(18, 26)]
network = pathpy.Network(directed=False)
for part in parts:
    for i in part:
        network.add_edge(f'{i:02}', f'{part[(i - part[0] + 1) % len(part)]:02}')
right = {frozenset(part) for part in parts}
seen = set()
for _ in range(20):
    components = tuple(sorted(tuple(sorted(int(i) for i in part)) for part in connected_components(network).values()))
    seen.add(components)
for components in list(seen)[:3]:
    print(f'sizes of the components: {[len(part) for part in components]} instead of {[len(part) for part in parts]}')
wrong = [components for components in seen if {frozenset(part) for part in components} != right]
print(f'{len(seen)} different answers in 20 calls, {len(wrong)} of them wrong')
assert len(seen) > 1 and wrong, 'this has changed'
PY
