#!/usr/bin/env bash
# torcheval 0.0.7: multiclass_binned_auroc gives a number per sample, not the area under the ROC curve of each class.
#
# Expected: "Compute AUROC, which is the area under the ROC Curve, for multiclass classification". With average=None, "calculate
# the metric for each class separately, and return the metric for every class". With 'macro', "return their unweighted mean". So
# three classes have three areas, and a model which separates all classes has 1.
# Seen: hits are summed over the classes of each sample, and not over the samples of each class. With 200 samples of 3 classes,
# the result has 200 entries. The macro value is the mean of these. So useless scores, with which most samples get the most
# frequent class, have 0.78 instead of about 0.5. multiclass_auroc is right. The example of the documentation has five numbers
# for three classes, too. MulticlassBinnedAUROC gives the same.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet torcheval==0.0.7 torch==2.13.0 numpy==2.4.6
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import numpy as np
import torch
from torcheval.metrics import MulticlassBinnedAUROC
from torcheval.metrics.functional import multiclass_auroc, multiclass_binned_auroc

print(f'torcheval {version("torcheval")}')
rng = np.random.default_rng(0)


def area(scores, labels):
    larger = scores[labels][:, None] - scores[~labels][None]
    return np.mean((larger > 0) + 0.5 * (larger == 0))


n, classes = 200, 3
thresholds = torch.linspace(0, 1, 1001)
for name in ('useful', 'useless, equal classes', 'useless, 80 % of class 0'):
    labels = rng.choice(classes, n, p=[0.8, 0.1, 0.1] if '80 %' in name else [1 / 3] * 3)
    logits = rng.normal(size=(n, classes))
    logits += 2 * np.eye(classes)[labels] if name == 'useful' else np.array([2, 0, 0]) * ('80 %' in name)
    p = np.exp(logits)
    p /= p.sum(axis=1, keepdims=True)
    right = [area(p[:, k], labels == k) for k in range(classes)]
    arguments = torch.from_numpy(p), torch.from_numpy(labels)
    each, _ = multiclass_binned_auroc(*arguments, num_classes=classes, threshold=thresholds, average=None)
    macro, _ = multiclass_binned_auroc(*arguments, num_classes=classes, threshold=thresholds)
    metric = MulticlassBinnedAUROC(num_classes=classes, threshold=thresholds)
    metric.update(*arguments)
    exact = multiclass_auroc(*arguments, num_classes=classes, average=None).numpy()
    print(f'{name}: {len(each)} values for {classes} classes, macro {macro:.3f}, class version {metric.compute()[0]:.3f}. '
          f'By the definition {np.round(right, 3)}, mean {np.mean(right):.3f}. multiclass_auroc {exact.round(3)}')  # fmt: skip
    assert np.allclose(exact, right, atol=1e-6), 'this has changed'
    assert len(each) == n and np.isclose(macro, each.mean()), 'this has changed'
    assert np.isclose(metric.compute()[0], macro), 'this has changed'
    assert abs(macro - np.mean(right)) > 0.2 or '80 %' not in name, 'this has changed'
PY
