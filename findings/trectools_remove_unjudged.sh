#!/usr/bin/env bash
# trectools 0.0.50: removeUnjudged does nothing in get_reciprocal_rank and get_rprec.
#
# Expected: of get_reciprocal_rank and get_rprec, removeUnjudged is "set to True if you want to remove the unjudged documents
# before calculating this metric". So ranks are those among the judged documents, as with get_precision.
# Seen: both filter the run into a variable which is not used after: the top documents are taken from the whole run again. A
# relevant document at rank 3 after an unjudged one and a judged one has a reciprocal rank of 1/3 instead of 1/2.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet trectools==0.0.50 numpy==2.4.6 scipy==1.17.1 pandas==3.1.1
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import pandas as pd
from trectools import TrecEval, TrecQrel, TrecRun

print(f'trectools {version("trectools")}')
documents = ['judged_0', 'unjudged_1', 'relevant_2', 'unjudged_3', 'relevant_4']
run, qrels = TrecRun(None), TrecQrel(None)
rows = [('1', 'Q0', name, rank, 10.0 - rank, 'system') for rank, name in enumerate(documents, 1)]
run.load_run_from_dataframe(pd.DataFrame(rows, columns=['query', 'q0', 'docid', 'rank', 'score', 'system']))
judged = {name: int(name.startswith('relevant')) for name in documents if not name.startswith('unjudged')}
rows = [('1', '0', name, relevance) for name, relevance in judged.items()]
qrels.qrels_data = pd.DataFrame(rows, columns=['query', 'q0', 'docid', 'rel'])
evaluation = TrecEval(run, qrels)

for remove in (False, True):
    ranking = [judged.get(name, 0) for name in documents if name in judged or not remove]
    part = sum(ranking[:2]) / 2  # there are two relevant documents
    right = {'get_reciprocal_rank': 1 / (ranking.index(1) + 1), 'get_rprec': part, 'get_precision': part}
    for name, value in right.items():
        options = {'depth': 2} if name == 'get_precision' else {}
        seen = getattr(evaluation, name)(removeUnjudged=remove, **options)
        print(f'{name}, removeUnjudged={remove}: {seen:.3f}, by the definition {value:.3f}')
        assert (abs(seen - value) < 1e-9) == (not remove or name == 'get_precision'), 'this has changed'
PY
