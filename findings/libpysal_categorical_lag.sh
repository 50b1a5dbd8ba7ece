#!/usr/bin/env bash
# libpysal 4.14.1: the categorical lag of a Graph is returned in the sorted order of the names, and not in the order of the graph.
#
# Expected: Graph.lag(y) of categories has the most frequent category of the neighbors of each unit, "aligned with graph.unique_ids", as the
# lag of numbers is. y is given in this order.
# Seen: a group-by sorts the names of the units, and the result is a bare array. Unless names are sorted, values belong to other units: in a
# column of the same table, each unit gets the lag of another. Numbers are right. There is no warning.
# A similar bug of to_W was fixed: https://github.com/pysal/libpysal/pull/551
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet libpysal==4.14.1 numpy==2.2.6 pandas==2.2.3 scipy==1.15.3 geopandas==1.1.1 shapely==2.1.1
cd "$folder"
"$folder/venv/bin/python" -W ignore - <<'PY'
from collections import Counter
from importlib.metadata import version

import numpy as np
import pandas as pd
from libpysal.graph import Graph

print(f'libpysal {version("libpysal")}')
kind = {'Oslo': 'sea', 'Bern': 'land', 'Rome': 'sea', 'Kiel': 'land', 'Aarau': 'land'}
edges = [('Oslo', 'Bern'), ('Bern', 'Rome'), ('Oslo', 'Rome'), ('Rome', 'Kiel'), ('Kiel', 'Aarau'), ('Rome', 'Aarau')]


def lags(names):
    both = sorted(edges + [(v, u) for u, v in edges], key=lambda edge: (names.index(edge[0]), names.index(edge[1])))
    graph = Graph.from_arrays([u for u, _ in both], [v for _, v in both], np.ones(len(both)))
    assert list(graph.unique_ids) == names
    table = pd.DataFrame({'kind': [kind[name] for name in names]}, index=names)
    table['number'] = (table['kind'] == 'sea').astype(float)
    right, count = [], []
    for name in names:  # By the definition. A tie is broken by the kind of the unit.
        near = [kind[v] for u, v in both if u == name]
        modes = [k for k, c in Counter(near).items() if c == max(Counter(near).values())]
        right.append(modes[0] if len(modes) == 1 else kind[name])
        count.append(float(near.count('sea')))
    assert graph.lag(table['number']).tolist() == count, 'this has changed'
    return [str(k) for k in graph.lag(table['kind'], ties='tryself')], right


for names in (sorted(kind), list(kind)):
    seen, right = lags(names)
    print(f'units {names}\n  lag      {seen}\n  by hand  {right}')
    if names == sorted(kind):
        assert seen == right, 'this has changed'
        by_name = dict(zip(names, seen))
    else:
        assert seen != right and seen == [by_name[name] for name in sorted(kind)], 'this has changed'
PY
