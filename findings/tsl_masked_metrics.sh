#!/usr/bin/env bash
# torch-spatiotemporal 0.9.5: MaskedMRE does not agree with mre for series below zero, and r2 of valid values depends on masked ones.
#
# Expected: the mean relative error is documented as the sum of |error| divided by the sum of |y|, in the function mre. MaskedMRE is the
# same metric over batches. r2 has a mask to "compute the metric using only the values at valid indices".
# Seen: MaskedMRE divides by the sum of y. For temperatures around zero degrees, or standardised values, it is several times too
# large, and if the sum is negative, it is the sum of all errors, without any division. r2, of torch and of numpy, takes the mean of all
# values, also of masked ones. A missing value stored as 0 changes it, and one stored as nan makes it nan. The script loads two files
# of the package alone, as the whole package needs compiled extensions.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet torch==2.13.0 numpy==2.4.6 pandas==2.3.3 pyyaml==6.0.3 tqdm==4.70.1 torchmetrics==1.9.0
"$folder/venv/bin/pip" install --quiet --no-deps torch-spatiotemporal==0.9.5
cd "$folder"
"$folder/venv/bin/python" -W ignore - <<'PY'
import sys
from importlib import import_module
from importlib.metadata import distribution
from types import ModuleType

import torch

package = distribution('torch-spatiotemporal')
for name in ('tsl.metrics', 'tsl.metrics.torch'):  # Without their imports of other files.
    sys.modules[name] = ModuleType(name)
    sys.modules[name].__path__ = [str(package.locate_file(name.replace('.', '/')))]
metrics = import_module('tsl.metrics.torch.metrics')
functional = import_module('tsl.metrics.torch.functional')
print(f'torch-spatiotemporal {package.version}')

errors = torch.tensor([[1.0, -1.0, 1.0, -1.0]])
for name, y in (('above zero', [[4.0, 6.0, 5.0, 5.0]]), ('around zero', [[-4.0, 6.0, 5.0, -5.0]]), ('below', [[-4.0, -6.0, -5.0, -5.0]])):
    y = torch.tensor(y)
    metric = metrics.MaskedMRE()
    metric.update(y + errors, y)
    seen = metric.compute().item(), functional.mre(y + errors, y).item(), (errors.abs().sum() / y.abs().sum()).item()
    print('{}: MaskedMRE {:.2f}, mre {:.2f}, by the equation {:.2f}'.format(name, *seen))
    assert abs(seen[0] - {'above zero': 0.2, 'around zero': 2.0, 'below': 4.0}[name]) < 1e-5, 'this has changed'
    assert abs(seen[1] - 0.2) < 1e-5 and abs(seen[2] - 0.2) < 1e-5, 'this has changed'

y = torch.tensor([50.0, 52.0, 54.0, 56.0, 0.0])  # The last one is missing, and masked.
prediction = torch.full_like(y, 53.0)  # The mean of the valid values, whose R2 is 0 by definition.
mask = torch.tensor([True, True, True, True, False])
alone = functional.r2(prediction[mask], y[mask]).item()
masked = [functional.r2(prediction, y.masked_fill(~mask, fill), mask).item() for fill in (53.0, 0.0, float('nan'))]
print(f'R2 of the mean: valid values alone {alone:.3f}, masked value 53, 0 and nan: {[round(value, 3) for value in masked]}')
assert alone == masked[0] == 0 and masked[1] > 0.9 and masked[2] != masked[2], 'this has changed'
PY
