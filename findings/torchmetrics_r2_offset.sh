#!/usr/bin/env bash
# torchmetrics 1.9.0: R2Score and ExplainedVariance improve if all targets and predictions are shifted by the same constant.
#
# Expected: both compare errors with the spread of the targets, so that a common shift has no effect. scikit-learn 1.9.1 gives the
# same value for the same float32 arrays, and so does PearsonCorrCoef of torchmetrics.
# Seen: the spread is computed as sum(y^2) - n mean(y)^2 in float32. Energies of molecules (mean -11178 eV, deviation 2 eV) get an R2
# of 0.88 instead of 0.78. At an offset of 100 000, with a deviation of 1, it is 0.
# Symptoms are known: https://github.com/Lightning-AI/torchmetrics/issues/1573 and https://github.com/Lightning-AI/torchmetrics/issues/3077
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet torch==2.13.0 torchmetrics==1.9.0 scikit-learn==1.9.1
cd "$folder"
"$folder/venv/bin/python" - <<'PY'
import sklearn.metrics
import torch
import torchmetrics
from torchmetrics.functional import explained_variance, pearson_corrcoef, r2_score

print(f'torchmetrics {torchmetrics.__version__}')
torch.manual_seed(0)
spread, error = torch.randn(1000), torch.randn(1000)
seen = {}
for offset, scale in ((0, 2), (-11178, 2), (100_000, 1)):
    y = scale * spread + offset
    p = y + scale / 2 * error
    seen[offset] = r2_score(p, y).item(), explained_variance(p, y).item(), sklearn.metrics.r2_score(y.numpy(), p.numpy())
    print(f'offset {offset}: R2 {seen[offset][0]:.4f}, explained variance {seen[offset][1]:.4f},', end=' ')
    print(f'scikit-learn {seen[offset][2]:.4f}, correlation {pearson_corrcoef(p, y):.4f}')
assert all(abs(right - seen[0][2]) < 0.01 for *_, right in seen.values()), 'this has changed'
assert abs(seen[0][0] - seen[0][2]) < 1e-3, 'this has changed'
assert all(abs(value - seen[0][2]) > 0.05 for offset in (-11178, 100_000) for value in seen[offset][:2]), 'this has changed'
PY
