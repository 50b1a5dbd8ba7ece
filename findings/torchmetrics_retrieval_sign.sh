#!/usr/bin/env bash
# torchmetrics 1.9.0: retrieval precision, recall, MAP and MRR ignore relevant documents whose score is zero or negative.
#
# Expected: the metrics depend on the ranking alone, so subtracting a constant from all scores has no effect, and precision at k is
# "the fraction of relevant documents among all the retrieved documents". Recommenders rank by dot products, whose sign means nothing.
# A probability of exactly 0 is a probability too (a float32 sigmoid of -104).
# Seen: relevant documents with a score of at most 0 count as irrelevant in four of the nine metrics. Perfect rankings get 0 if all
# scores are negative, while nDCG, hit rate, R-precision and fall-out of the same scores are perfect. There is no warning,
# and the documentation has no such rule. https://github.com/Lightning-AI/torchmetrics/pull/3104 proposed it.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet torch==2.13.0 torchmetrics==1.9.0
cd "$folder"
"$folder/venv/bin/python" - <<'PY'
import torch
import torchmetrics
from torchmetrics.functional import retrieval

print(f'torchmetrics {torchmetrics.__version__}')
scores, target = torch.tensor([0.9, 0.6, 0.3, 0.1]), torch.tensor([1, 1, 0, 0])
metrics = {
    'precision': lambda p: retrieval.retrieval_precision(p, target, top_k=2),
    'recall': lambda p: retrieval.retrieval_recall(p, target, top_k=2),
    'average precision': lambda p: retrieval.retrieval_average_precision(p, target),
    'reciprocal rank': lambda p: retrieval.retrieval_reciprocal_rank(p, target),
    'nDCG': lambda p: retrieval.retrieval_normalized_dcg(p, target),
    'hit rate': lambda p: retrieval.retrieval_hit_rate(p, target, top_k=2),
    'R-precision': lambda p: retrieval.retrieval_r_precision(p, target),
    'fall-out (0 is best)': lambda p: retrieval.retrieval_fall_out(p, target, top_k=2),
}
seen = {}
for name, metric in metrics.items():
    seen[name] = [metric(scores - shift).item() for shift in (0.0, 0.6, 0.7, 1.0)]
    print(f'{name}: {seen[name][0]:.2f}, all scores less 0.6: {seen[name][1]:.2f}, 0.7: {seen[name][2]:.2f}, 1: {seen[name][3]:.2f}')
model = torchmetrics.retrieval.RetrievalMAP()
print(f'RetrievalMAP of negative scores: {model(scores - 1, target, indexes=torch.zeros(4, dtype=torch.long)):.2f}')
half, rank = [1.0, 0.5, 0.5, 0.0], [1.0, 1.0, 1.0, 0.0]
assert seen.pop('precision') == half and seen.pop('recall') == half, 'this has changed'
assert seen.pop('average precision') == rank and seen.pop('reciprocal rank') == rank, 'this has changed'
assert all(len(set(values)) == 1 for values in seen.values()), 'this has changed'
PY
