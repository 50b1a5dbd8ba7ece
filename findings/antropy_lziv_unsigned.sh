#!/usr/bin/env bash
# antropy 0.2.3: the Lempel-Ziv complexity of unsigned integers is that of their decimal digits.
#
# Expected: "Float and integer arrays are cast to uint32 before processing" (docstring of lziv_complexity). The complexity of a
# sequence depends on its values only, and not on the type of the array. normalize divides by n / log_b(n), for n values, b of
# them different.
# Seen: arrays are cast if their kind is one of "bfi", but unsigned integers have the kind "u". These are written as strings,
# joined and read digit by digit: [1, 11, 111] is "111111". For uint8, the type of images and quantized signals, the complexity
# is another, and n and b count digits. Only values below 10 are right. There is no warning.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet antropy==0.2.3 numpy==2.4.6 scipy==1.17.1 scikit-learn==1.8.0 numba==0.68.1
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import numpy as np
from antropy import lziv_complexity

print(f'antropy {version("antropy")}')


def by_definition(values):
    """Each part is the shortest one that does not occur before, where it may overlap itself."""
    text, parts, start = ''.join(chr(1000 + value) for value in values), 0, 0
    while start < len(text):
        end = start + 1
        while end <= len(text) and text[start:end] in text[: end - 1]:
            end += 1
        parts, start = parts + 1, end
    return parts


rng = np.random.default_rng(0)
for name, values in (
    ('1, 11, 111, 1111 in turn', np.array([1, 11, 111, 1111] * 10)),
    ('300 values below 10', rng.integers(0, 10, 300)),
    ('300 values below 200', rng.integers(0, 200, 300)),
    ('300 values, 10 or 100', rng.choice([10, 100], 300)),
):
    right = by_definition(values.tolist())
    signed, unsigned = (lziv_complexity(values.astype(kind)) for kind in (np.int64, np.uint16))
    digits = by_definition([int(digit) for value in values for digit in str(value)])
    relative = [lziv_complexity(values.astype(kind), normalize=True) for kind in (np.int64, np.uint16)]
    print(f'{name}: int64 {signed}, uint16 {unsigned}, by the definition {right}, of the digits {digits}. '
          f'Normalized {relative[0]:.3f} and {relative[1]:.3f}')  # fmt: skip
    assert signed == right and unsigned == digits, 'this has changed'
    assert np.isclose(*relative) == (values.max() < 10), 'this has changed'
PY
