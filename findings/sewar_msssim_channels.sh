#!/usr/bin/env bash
# sewar 0.4.10: msssim of a color image blurs each channel into the next, so that it depends on the order of the channels.
#
# Expected: MS-SSIM of Wang, Simoncelli and Bovik (2003), which the package refers to, filters and downsamples an image in its
# two spatial directions. ssim of the package takes each channel for itself and averages over the channels. So the order of the
# channels does not matter, and each scale of each channel is that of the channel as a single image.
# Seen: arrays of shape (height, width, channels) are filtered by uniform_filter(im, 2), which averages over two neighbors in
# all three axes. From the second scale on, a channel is the mean of itself and the one before. A distortion of the last
# channel is halved, one of the first channel is counted twice, and RGB and BGR have different results. Images of one channel
# are right.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet sewar==0.4.10 numpy==2.4.6 scipy==1.17.1 pillow==12.1.1
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import numpy as np
from scipy.ndimage import uniform_filter
from scipy.signal import convolve2d
from sewar.full_ref import msssim

print(f'sewar {version("sewar")}')
weights = np.array([0.0448, 0.2856, 0.3001, 0.2363, 0.1333])
kernel = np.exp(-(np.arange(-5, 6) ** 2) / (2 * 1.5**2))
kernel = np.outer(kernel, kernel) / kernel.sum() ** 2


def structure(x, y):
    mean_x, mean_y, xx, yy, xy = (convolve2d(image, kernel, 'valid') for image in (x, y, x * x, y * y, x * y))
    low, high = (0.01 * 255) ** 2, (0.03 * 255) ** 2
    contrast = (2 * (xy - mean_x * mean_y) + high) / (xx - mean_x**2 + yy - mean_y**2 + high)
    return np.mean((2 * mean_x * mean_y + low) / (mean_x**2 + mean_y**2 + low) * contrast), contrast.mean()


def by_definition(x, y, size=(2, 2, 1)):
    result = 1
    for scale, weight in enumerate(weights):
        value, contrast = np.mean([structure(x[:, :, channel], y[:, :, channel]) for channel in range(x.shape[2])], axis=0)
        result *= (value if scale == len(weights) - 1 else contrast) ** weight
        x, y = (uniform_filter(image, size)[::2, ::2] for image in (x, y))
    return result


rng = np.random.default_rng(0)
grid = np.arange(192)
image = np.stack([128 + 60 * np.sin(grid[:, None] / a) * np.cos(grid / b) for a, b in ((5, 7), (9, 4), (6, 11))], axis=2)
noise = rng.normal(0, 40, (192, 192))
values = {}
for channel in range(3):
    noisy = image.copy()
    noisy[:, :, channel] += noise
    for name, order in (('RGB', [0, 1, 2]), ('BGR', [2, 1, 0])):
        x, y = image[:, :, order], noisy[:, :, order]
        seen, right = msssim(x, y, MAX=255).real, by_definition(x, y)
        values[channel, name] = seen, right
        print(f'noise in channel {"RGB"[channel]}, given as {name}: {seen:.4f}, without blur across channels {right:.4f}')
        assert abs(seen - by_definition(x, y, size=(2, 2, 2))) < 1e-9 and abs(seen - right) > 0.003, 'this has changed'
    assert abs(values[channel, 'RGB'][1] - values[channel, 'BGR'][1]) < 1e-9  # the order does not matter by the definition
    assert channel == 1 or abs(values[channel, 'RGB'][0] - values[channel, 'BGR'][0]) > 0.005, 'this has changed'
    single = [array[:, :, channel] for array in (image, noisy)]
    assert abs(msssim(*single, MAX=255).real - by_definition(*(array[:, :, None] for array in single))) < 1e-9
PY
