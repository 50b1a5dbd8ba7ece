#!/usr/bin/env bash
# rexmex 0.1.3: a classification report has the AUC of rounded scores, as the first rounded metric changes the scores for all.
#
# Expected: ScoreCard(ClassificationMetricSet()) has "the performance metrics calculated from the vectors". Some are for rounded
# scores, and some for the scores themselves: roc_auc is the "Area Under the ROC Curve" of the scores, as in the function
# roc_auc_score of rexmex.metrics. The order of the metrics does not matter, and the scores of the caller stay as they are.
# Seen: binarize of rexmex/utils.py writes zeros and ones into the array of scores. All metrics after the first of these get
# rounded scores, and no two reports with other selections agree. An AUC of 0.86 becomes 0.69, that of rounded scores. The true
# negative rate is of scores and the false positive rate of rounded ones, so that they do not add up to 1. An array of the
# caller is changed, too, where a column of a data frame is not.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet numpy==2.4.6 scipy==1.17.1 pandas==3.1.1 scikit-learn==1.8.0 six==1.17.0
"$folder/venv/bin/pip" install --quiet --no-deps rexmex==0.1.3
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import numpy as np
import pandas as pd
from rexmex.metrics.classification import roc_auc_score
from rexmex.metricset import ClassificationMetricSet
from rexmex.scorecard import ScoreCard

print(f'rexmex {version("rexmex")}')
rng = np.random.default_rng(0)
truth = (rng.random(200) < 0.4) * 1
scores = np.clip(0.3 + 0.2 * truth + 0.15 * rng.normal(size=200), 0, 1)


def auc(scores):
    """The share of pairs of a positive and a negative in which the positive has the higher score."""
    difference = np.subtract.outer(scores[truth == 1], scores[truth == 0])
    return ((difference > 0) + 0.5 * (difference == 0)).mean()


right, rounded = auc(scores), auc((scores >= 0.5) * 1.0)
frame = pd.DataFrame({'y_true': truth, 'y_score': scores})
everything = ScoreCard(ClassificationMetricSet()).generate_report(frame).iloc[0]
alone = ScoreCard(ClassificationMetricSet().filter_metrics(['roc_auc'])).generate_report(frame).iloc[0]
both = ScoreCard(ClassificationMetricSet().filter_metrics(['recall', 'roc_auc'])).generate_report(frame).iloc[0]
print(f'roc_auc in the report of all {everything.roc_auc:.4f}, alone {alone.roc_auc:.4f}, after recall {both.roc_auc:.4f}, '
      f'function {roc_auc_score(truth, scores):.4f}')  # fmt: skip
print(f'by the definition {right:.4f}, of rounded scores {rounded:.4f}')
assert np.isclose(alone.roc_auc, right) and np.isclose(roc_auc_score(truth, scores), right), 'this has changed'
assert np.allclose([everything.roc_auc, both.roc_auc], rounded) and right - rounded > 0.1, 'this has changed'

rates = everything.true_negative_rate + everything.false_positive_rate, everything.true_positive_rate + everything.miss_rate
print(f'true negative and false positive rate: sum {rates[0]:.3f}. True positive rate and miss rate: sum {rates[1]:.3f}')
assert max(abs(rate - 1) for rate in rates) > 0.1 and np.array_equal(frame.y_score, scores), 'this has changed'

array = scores.copy()
ScoreCard(ClassificationMetricSet()).get_performance_metrics(truth, array)
print(f'values of the array of scores after a report: {np.unique(array)}')
assert set(array) == {0, 1}, 'this has changed'
PY
