#!/usr/bin/env bash
# sewar 0.4.10: the universal quality index uqi takes means of windows for sums, and so is near 1 for unrelated images.
#
# Expected: uqi is "Universal Quality Image Index (UQI)", with a reference to Wang and Bovik (2002). There, in each window, Q =
# 4 cov(x, y) mean(x) mean(y) / ((var(x) + var(y)) (mean(x)^2 + mean(y)^2)), and the index is the mean over the windows. Q of
# independent noise is about 0, and Q of an image and its negative is about -1.
# Seen: the formula with N, the number of pixels of a window, needs sums over the window: N sum(x y) - sum(x) sum(y). The code
# inserts means, which gives N mean(x y) - mean(x) mean(y). The means dominate this, and the covariance hardly counts. Two
# independent noise images have a uqi of 0.96, and an image and its negative have 0.92. D_lambda, D_S and QNR use uqi.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet sewar==0.4.10 numpy==2.4.6 scipy==1.17.1 pillow==12.1.1
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import numpy as np
from sewar.full_ref import uqi

print(f'sewar {version("sewar")}')


def by_definition(x, y, size=8):
    windows = [np.lib.stride_tricks.sliding_window_view(image, (size, size)).reshape(-1, size * size) for image in (x, y)]
    (mean_x, mean_y), (var_x, var_y) = [w.mean(1) for w in windows], [w.var(1) for w in windows]
    covariance = ((windows[0] - mean_x[:, None]) * (windows[1] - mean_y[:, None])).mean(1)
    return np.mean(4 * covariance * mean_x * mean_y / ((var_x + var_y) * (mean_x**2 + mean_y**2)))


def as_coded(x, y, size=8):
    windows = [np.lib.stride_tricks.sliding_window_view(image, (size, size)).reshape(-1, size * size) for image in (x, y)]
    (mean_x, mean_y), count = [w.mean(1) for w in windows], size * size
    product, squares = mean_x * mean_y, mean_x**2 + mean_y**2
    numerator = 4 * (count * (windows[0] * windows[1]).mean(1) - product) * product
    return np.mean(numerator / ((count * ((windows[0] ** 2).mean(1) + (windows[1] ** 2).mean(1)) - squares) * squares))


rng = np.random.default_rng(0)
first, second = rng.uniform(80, 170, (2, 128, 128))
smooth = 128 + 40 * np.sin(np.arange(128) / 9)[:, None] * np.cos(np.arange(128) / 7)
noisy = smooth + rng.normal(0, 25, (128, 128))
for name, x, y in (('independent noise', first, second), ('image and noisy image', smooth, noisy),
                   ('image and its negative', first, 250 - first), ('the same image', first, first)):  # fmt: skip
    seen, right, coded = uqi(x, y), by_definition(x, y), as_coded(x, y)
    print(f'{name}: uqi {seen:.4f}, by the definition {right:.4f}, with means for sums {coded:.4f}')
    assert abs(seen - coded) < 0.01, 'this has changed'
    assert (abs(seen - right) < 1e-9) == (x is y) and (x is y or seen > 0.8 > right + 0.3), 'this has changed'
assert abs(by_definition(first, second)) < 0.02 and by_definition(first, 250 - first) < -0.9
PY
