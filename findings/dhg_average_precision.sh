#!/usr/bin/env bash
# DHG 0.9.7: one query whose relevant documents are not among the first k makes the mean average precision nan.
#
# Expected: the average precision of a query without a hit is 0, as recall, ndcg and mrr of the same module are. Documents that are not
# found lower the value.
# Seen: the precision is averaged over the documents that were found. Without any, it is the mean of nothing, nan, and so is the mean
# over all queries. And a query that finds one of nine relevant documents at rank one, and no other among the first k, has the
# perfect value 1. Without k, every relevant document is found, and the value is right.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet dhg==0.9.7 torch==2.13.0 numpy==2.4.6 scipy==1.17.1
cd "$folder"
"$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import numpy as np
import torch
from dhg.metrics import retrieval

print(f'DHG {version("dhg")}')
truth = torch.tensor([[1, 0, 0, 0, 0, 1, 0, 0, 0, 0], [1, 0, 0, 0, 0, 0, 0, 1, 0, 0], [0, 0, 0, 0, 0, 0, 0, 0, 1, 1]])
scores = torch.arange(10, 0, -1).repeat(3, 1) / 10
values = {name: getattr(retrieval, name)(truth, scores, k=3) for name in ('recall', 'ndcg', 'mrr')}
average = retrieval.map(truth, scores, k=3, method='legacy')
print(f'three queries, k = 3: map {average}, {values}')
assert np.isnan(average) and all(np.isfinite(value) for value in values.values()), 'this has changed'

truth = torch.tensor([1, 0, 0, 0, 0, 0] + [1] * 8)
scores = torch.arange(14, 0, -1) / 14
seen = retrieval.ap(truth.float(), scores, k=3, method='legacy')
relevant, found = int(truth.sum()), [rank for rank in range(3) if truth[rank]]
right = sum((i + 1) / (rank + 1) for i, rank in enumerate(found)) / min(3, relevant)
print(f'one of {relevant} relevant documents found among the first 3: average precision {seen} instead of at most {right:.3f}')
assert seen == 1 and abs(right - 1 / 3) < 1e-9, 'this has changed'
PY
