#!/usr/bin/env bash
# trectools 0.0.50: NDCG takes documents in the order of the run, although trec_eval=True promises that of the scores.
#
# Expected: trec_eval of get_ndcg is "set to True if result should be the same as trec_eval, e.g., sort documents by score
# first. Default = True". trec_eval sorts by score, and equal scores by document, both descending. get_map, get_precision and
# others do that.
# Seen: get_ndcg does not sort. The order of lines of load_run_from_dataframe counts, and scores do not. Of a run which is read
# from a file, documents of equal scores are in ascending order. So NDCG and the other metrics are of different rankings.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet trectools==0.0.50 numpy==2.4.6 scipy==1.17.1 pandas==3.1.1
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
import tempfile
from importlib.metadata import version

import numpy as np
import pandas as pd
from trectools import TrecEval, TrecQrel, TrecRun

print(f'trectools {version("trectools")}')
columns = ['query', 'q0', 'docid', 'rank', 'score', 'system']
qrels = TrecQrel(None)
qrels.qrels_data = pd.DataFrame([('1', '0', 'c', 1), ('1', '0', 'a', 0)], columns=['query', 'q0', 'docid', 'rel'])


def by_definition(rows):
    ranking = sorted(((row[4], row[2]) for row in rows), reverse=True)
    rank = [name for _, name in ranking].index('c') + 1
    return 1 / np.log2(rank + 1), 1 / rank  # with one relevant document


for name, scores in (('sorted scores', {'c': 3.0, 'b': 2.0, 'a': 1.0}), ('scores not sorted', {'a': 1.0, 'b': 2.0, 'c': 3.0}),
                     ('equal scores', {'a': 1.0, 'b': 1.0, 'c': 1.0})):  # fmt: skip
    rows = [('1', 'Q0', document, rank, score, 'system') for rank, (document, score) in enumerate(scores.items(), 1)]
    memory = TrecRun(None)
    memory.load_run_from_dataframe(pd.DataFrame(rows, columns=columns))
    with tempfile.NamedTemporaryFile('w', suffix='.txt') as file:
        file.write('\n'.join(' '.join(map(str, row)) for row in rows) + '\n')
        file.flush()
        read = TrecRun(file.name)
    ndcg, ap = by_definition(rows)
    for source, run in (('data frame', memory), ('file', read)):
        evaluation = TrecEval(run, qrels)
        seen, other = evaluation.get_ndcg(trec_eval=True), evaluation.get_map(trec_eval=True)
        print(f'{name}, {source}: NDCG {seen:.3f}, by the definition {ndcg:.3f}. MAP {other:.3f}, by the definition {ap:.3f}')
        assert np.isclose(other, ap), 'this has changed'
        right = name == 'sorted scores' or (name == 'scores not sorted' and source == 'file')
        assert np.isclose(seen, ndcg) == right, 'this has changed'
PY
