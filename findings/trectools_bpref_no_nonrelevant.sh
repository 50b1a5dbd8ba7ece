#!/usr/bin/env bash
# trectools 0.0.50: bpref is 0 for a query of which all judged documents are relevant and retrieved, and 1 is right.
#
# Expected: get_bpref has trec_eval=True by default, "set to True if result should be the same as trec_eval". bpref of Buckley
# and Voorhees (2004) is the mean, over the relevant documents, of 1 minus the part of judged non-relevant documents ranked
# above it. Without a judged non-relevant document above, this is 1. trec_eval adds 1 for such a document, and divides only if
# there are some above.
# Seen: 0 is divided by the number of judged non-relevant documents, which is 0. The result is NaN, which a sum leaves out. So
# the perfect ranking gets 0, and the mean over queries is too low. With one judged non-relevant document at the end, it is 1.
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


def by_definition(ranking, judged):
    relevant = sum(value > 0 for value in judged.values())
    others, above, total = len(judged) - relevant, 0, 0.0
    for name in ranking:
        if judged.get(name, -1) > 0:
            total += 1 - min(above, relevant) / min(others, relevant) if above else 1
        elif name in judged:
            above += 1
    return total / relevant


ranking = ['a', 'b', 'c', 'd', 'e']
for judged in ({'a': 1, 'b': 1}, {'b': 1, 'd': 2}, {'a': 1, 'b': 1, 'e': 0}, {'a': 0, 'b': 1, 'd': 1}):
    run, qrels = TrecRun(None), TrecQrel(None)
    rows = [('1', 'Q0', name, rank, 10.0 - rank, 'system') for rank, name in enumerate(ranking, 1)]
    run.load_run_from_dataframe(pd.DataFrame(rows, columns=['query', 'q0', 'docid', 'rank', 'score', 'system']))
    rows = [('1', '0', name, relevance) for name, relevance in judged.items()]
    qrels.qrels_data = pd.DataFrame(rows, columns=['query', 'q0', 'docid', 'rel'])
    seen, right = TrecEval(run, qrels).get_bpref(), by_definition(ranking, judged)
    print(f'ranking {"".join(ranking)}, judged {judged}: bpref {seen:.3f}, by the definition {right:.3f}')
    assert abs(seen - (right if 0 in judged.values() else 0)) < 1e-9, 'this has changed'
    assert right == 1 or 0 in judged.values()
PY
