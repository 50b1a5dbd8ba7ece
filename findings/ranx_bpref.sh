#!/usr/bin/env bash
# ranx 0.3.21: one query without documents judged nonrelevant makes the bpref of the whole run nan.
#
# Expected: the documented equation subtracts, for each relevant document, the nonrelevant ones ranked higher, divided by R. Without
# judged nonrelevant documents, nothing is subtracted, and bpref is the share of the relevant documents retrieved: 1 if all are.
# Most large collections (MS MARCO) have only relevant judgments for most queries.
# Seen: the number ranked higher, 0, is divided by min(R, number of nonrelevant documents), which is 0 too. The nan of one query is in the
# mean over all queries, and in the comparison of models. There is no warning, and the other metrics are right.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet ranx==0.3.21 numpy==1.26.4 pandas==2.3.3 scipy==1.17.1
"$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import numpy as np
from ranx import Qrels, Run, evaluate

print(f'ranx {version("ranx")}')
judged = {'q1': {'a': 1, 'b': 1, 'c': 0}, 'q2': {'x': 1, 'y': 1}}
run = {'q1': {'a': 0.9, 'b': 0.8, 'c': 0.7}, 'q2': {'x': 0.5, 'y': 0.4}}
seen = {}
for metric in ('bpref', 'map', 'ndcg'):
    for queries in (['q1'], ['q2'], ['q1', 'q2']):
        qrels, ranked = Qrels({q: judged[q] for q in queries}), Run({q: run[q] for q in queries})
        name = ' and '.join(queries)
        seen[metric, name] = float(evaluate(qrels, ranked, metric))
        print(f'{metric} of {name}: {seen[metric, name]}')
assert seen.pop(('bpref', 'q1')) == 1, 'this has changed'
assert np.isnan(seen.pop(('bpref', 'q2'))) and np.isnan(seen.pop(('bpref', 'q1 and q2'))), 'this has changed'
assert all(value == 1 for value in seen.values()), 'this has changed'
PY
