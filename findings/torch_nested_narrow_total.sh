#!/usr/bin/env bash
# torch 2.13.0: sum(), mean() and max() of torch.nested.narrow(layout=torch.jagged) count the elements that were cut away.
#
# Expected: the nested tensor "shows only the elements in the interval [start, start+length)". Its numel() and its parts are
# those. So its sum is the sum of its parts, as it is if the same parts are given to nested_tensor.
# Seen: the jagged result is a view of the whole tensor with gaps. Reductions over all dimensions ignore where parts begin
# and end: they reduce the whole tensor. Padding of 1e9 is the maximum, and the mean is the mean with padding. Reductions of the
# ragged dimension alone raise an error in this case. Elementwise operations and reductions of the last dimension are right.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet torch==2.13.0 numpy==2.4.6
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
import numpy as np
import torch

print(f'torch {torch.__version__}')
rng = np.random.default_rng(0)
values, lengths = rng.normal(size=(3, 6, 2)).round(2), np.array([2, 6, 3])
padding = np.arange(6) >= lengths[:, None]
values[padding] = 1e9
kept = values[~padding]
length, start = torch.tensor(lengths), torch.zeros(3, dtype=torch.long)
narrow = torch.nested.narrow(torch.tensor(values), 1, start, length, layout=torch.jagged)
parts = list(narrow.unbind())
same = torch.nested.nested_tensor([part.clone() for part in parts], layout=torch.jagged)
assert narrow.numel() == kept.size and np.array_equal(torch.cat(parts).numpy(), kept)

for name in ('sum', 'mean', 'amax', 'max', 'prod', 'all'):
    right, whole = (getattr(array, name if name != 'amax' else 'max')() for array in (kept, values))
    if name == 'all':
        seen, other = (nested < 1e8 for nested in (narrow, same))
        seen, other, right, whole = seen.all().item(), other.all().item(), (kept < 1e8).all(), (values < 1e8).all()
    else:
        seen, other = getattr(narrow, name)().item(), getattr(same, name)().item()
    print(f'{name}: narrow {seen:.6g}, nested_tensor of its parts {other:.6g}, by NumPy {right:.6g}, with padding {whole:.6g}')
    assert np.isclose(other, right) and np.isclose(seen, whole) and not np.isclose(seen, right), 'this has changed'

rows = torch.cat(list(narrow.sum(-1).unbind())).numpy()
print(f'sum of the last dimension: largest error {abs(rows - kept.sum(1)).max():.1g}')
assert np.allclose(rows, kept.sum(1)), 'this has changed'
PY
