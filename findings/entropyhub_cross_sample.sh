#!/usr/bin/env bash
# EntropyHub 2.0: cross-sample entropy counts vectors at the end that cannot be extended, so that it is too large.
#
# Expected: the cross-sample entropy of XSampEn is -log(A / B) (Richman and Moorman 2000). B counts pairs of near vectors of
# length m, one of each signal, and A those that are near with one more value. Both are for the first N - m vectors, which have
# one more value, so that A / B is the share of pairs that stay near. SampEn of the same package does so for one signal.
# Seen: in SampEn, pairs with one of the last m * tau vectors are left out of B, in XSampEn they are not. Such a pair cannot be
# in A. It always counts as one that does not stay near: the entropy of two short signals with the same end is too large.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet numpy==2.4.6 scipy==1.17.1 matplotlib==3.11.2 EMD-signal==1.10.0 requests==2.34.2
"$folder/venv/bin/pip" install --quiet --no-deps EntropyHub==2.0
cd "$folder"
MPLBACKEND=Agg OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import EntropyHub
import numpy as np

print(f'EntropyHub {version("EntropyHub")}')


def by_definition(first, second, m, tau, r):
    n = len(first) - m * tau
    a = b = 0
    for i in range(n):
        for j in range(n):
            distances = [abs(first[i + k * tau] - second[j + k * tau]) for k in range(m + 1)]
            a, b = a + (max(distances) <= r), b + (max(distances[:-1]) <= r)
    return a, b


m, r = 2, 0.2
t = np.arange(20.0)
rng = np.random.default_rng(0)
walk = rng.normal(size=(2, 60)).cumsum(1)
walk = (walk - walk.mean(1, keepdims=True)) / walk.std(1, keepdims=True)
for name, first, second, tau in (
    ('two straight lines', t, t + 0.1, 1),
    ('two straight lines', t, t + 0.1, 3),
    ('two constant signals', t * 0, t * 0 + 0.1, 1),
    ('two random walks', *walk, 1),
    ('two random walks', *walk, 5),
):
    entropy, near, pairs = EntropyHub.XSampEn(first, second, m=m, tau=tau, r=r)
    a, b = by_definition(first, second, m, tau, r)
    print(f'{name}, tau={tau}: entropy {entropy[m]:.4f}, A {near[m]:.0f}, B {pairs[m]:.0f}. By the definition '
          f'{-np.log(a / b):.4f}, A {a}, B {b}')  # fmt: skip
    assert near[m] == a and pairs[m] > b and entropy[m] > -np.log(a / b) + 1e-3, 'this has changed'

# SampEn counts the pairs of one signal once, and without those of a vector with itself.
for tau in (1, 5):
    entropy, near, pairs = EntropyHub.SampEn(walk[0], m=m, tau=tau, r=r)
    a, b = ((count - (60 - m * tau)) // 2 for count in by_definition(walk[0], walk[0], m, tau, r))
    print(f'SampEn of one random walk, tau={tau}: A {near[m]:.0f}, B {pairs[m]:.0f}. By the definition A {a}, B {b}')
    assert (near[m], pairs[m]) == (a, b), 'this has changed'
PY
