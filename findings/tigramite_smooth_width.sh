#!/usr/bin/env bash
# tigramite 5.2.10.1: smooth with the gaussian kernel is wider than documented, by the square root of 2.
#
# Expected: "smoothing kernel width = twice the sigma", says the documentation: for smooth_width = 10, sigma is 5, as for
# scipy.ndimage.gaussian_filter1d with sigma=5. Weights are exp(-d^2 / (2 sigma^2)).
# Seen: the weights are exp(-d^2 / smooth_width^2), without the factor 2 of the exponent. Their standard deviation is 7.07 for smooth_width
# = 10. A wave is damped more: with a period of 30, 0.33 of it is left instead of 0.58. residuals=True, which is for taking seasons away,
# leaves 0.67 of it instead of 0.42. The heaviside kernel with an odd width is that of a running mean of this width.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet tigramite==5.2.10.1 numpy==2.4.6 scipy==1.17.1
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import numpy as np
from scipy.ndimage import gaussian_filter1d, uniform_filter1d
from tigramite.data_processing import smooth

print(f'tigramite {version("tigramite")}')
T = 1001
impulse = np.zeros(T)
impulse[T // 2] = 1
distance = np.arange(T) - T // 2
for width in (4, 10, 40):
    response = smooth(impulse, width)
    deviation = np.sqrt((response * distance**2).sum() / response.sum())
    half, wider = (gaussian_filter1d(impulse, sigma, truncate=8) for sigma in (width / 2, width / 2**0.5))
    print(f'smooth_width {width}: standard deviation of the kernel {deviation:.3f}, documented {width / 2}, divided by it '
          f'{deviation / (width / 2):.4f}')  # fmt: skip
    assert np.allclose(response, wider, atol=1e-4) and not np.allclose(response, half, atol=0.005), 'this has changed'

wave = np.sin(2 * np.pi * np.arange(T) / 30)
inner = slice(100, -100)


def amplitude(x):
    return np.sqrt(2 * (x[inner] ** 2).mean())


seen, left = amplitude(smooth(wave, 10)), amplitude(smooth(wave, 10, residuals=True))
right = gaussian_filter1d(wave, 5)
print(f'wave with a period of 30: amplitude smoothed {seen:.3f}, with sigma = 5 {amplitude(right):.3f}. '
      f'Residuals {left:.3f}, with sigma = 5 {amplitude(wave - right):.3f}')  # fmt: skip
assert abs(seen - 0.33) < 0.01 and abs(amplitude(right) - 0.58) < 0.01 and abs(left - 0.67) < 0.01, 'this has changed'

running = smooth(wave, 9, kernel='heaviside')
assert np.allclose(running[inner], uniform_filter1d(wave, 9)[inner]), 'this has changed'
PY
