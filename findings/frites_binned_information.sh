#!/usr/bin/env bash
# frites 0.4.6: the binned mutual information of a signal and independent classes is about 1 bit instead of about 0.
#
# Expected: BinMIEstimator computes the mutual information by "binning". The information is H(X) + H(Y) - H(X, Y), with
# entropies of one histogram. It is 0 for independent variables, up to a small bias, and 1 bit for a binary variable and
# itself. With mi_type='cd', y is discrete, with one bin for each class.
# Seen: the joint histogram has no closed last bin, so that samples with the largest value are left out. numpy.histogram, which
# gives H(X) and H(Y), counts them. With classes as y, the whole last class is left out of H(X, Y). For two classes, H(X, Y) is
# H(X) of the first class alone. So 1 bit is added for any signal, and a class has 2 bits about itself.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet frites==0.4.6 mne==1.13.2 numpy==2.4.6 scipy==1.17.1 xarray==2026.9.0
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import numpy as np
from frites.estimator import BinMIEstimator

print(f'frites {version("frites")}')


def information(counts):
    joint = counts / counts.sum()
    product = joint.sum(1, keepdims=True) * joint.sum(0)
    return (joint[joint > 0] * np.log2(joint[joint > 0] / product[joint > 0])).sum()


rng = np.random.default_rng(0)
for classes in (2, 3, 4):
    y = np.repeat(np.arange(classes), 200).astype(np.float32)
    for name, x in (('independent signal', rng.normal(size=y.size)), ('the class itself', y)):
        x = x.astype(np.float32)
        bins = 4 if name == 'independent signal' else classes
        right = information(np.histogram2d(x, y, bins=(bins, classes))[0])
        seen = float(BinMIEstimator(mi_type='cd', n_bins=bins, verbose=False).estimate(x, y)[0, 0])
        print(f'{name}, {classes} classes, {bins} bins: {seen:.3f} bits, by the definition {right:.3f}')
        assert right < 0.02 if name == 'independent signal' else np.isclose(right, np.log2(classes))
        assert seen > right + 0.35, 'this has changed'
        if classes == 2:
            assert abs(seen - right - 1) < 0.05, 'this has changed'
PY
