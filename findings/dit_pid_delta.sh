#!/usr/bin/env bash
# dit 2.3: PID_Delta converts deficiencies in bits to bits again, so that unique informations are too large.
#
# Expected: the redundancy is "min{ I(M;X) - delta(M:X\Y), I(M;Y) - delta(M:Y\X) }" (Banerjee et al. 2018), where delta is the
# weighted output Kullback-Leibler deficiency. All are in bits. As delta(M:X\Y) is at most I(M;X), the redundancy is never
# negative. If M is a copy of X, and Y is independent, X has 1 bit of unique information, and all else is 0.
# Seen: _kl_deficiency says that "weighted_output_kl_deficiency returns nats; convert to bits", and divides by log(2). But that
# function uses log2, "to match dit's bit convention". In the example, X has 1.44 bits of unique information, of 1 bit in all,
# and Y has 0.44 bits, although it is independent of M. The redundancy is -0.44 bits.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet dit==2.3 numpy==2.4.6 scipy==1.17.1 networkx==3.6.1 pandas==3.1.1 xarray==2026.9.0 \
  boltons==26.2.0 debtcollector==3.1.0 lattices==0.5.1 loguru==0.7.3 PLTable==1.1.0
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version
from itertools import product

import numpy as np
from dit import Distribution
from dit.channelorder.deficiency import weighted_output_kl_deficiency
from dit.pid import PID_Delta

print(f'dit {version("dit")}')


def deficiency(joint):  # of axes x, y, m: the least mean divergence of P(X|m) from L P(Y|m) over channels L, by EM, in bits
    p_m = joint.sum((0, 1))
    x, y = joint.sum(1).T / p_m[:, None], joint.sum(0).T / p_m[:, None]
    channel = np.full((y.shape[1], x.shape[1]), 1 / x.shape[1])
    for _ in range(20000):
        ratio = np.divide(x, y @ channel, out=np.zeros_like(x), where=x > 0)
        channel = channel * ((p_m[:, None] * y).T @ ratio)
        channel /= channel.sum(1, keepdims=True)
    logs = np.log2(np.divide(x, y @ channel, out=np.ones_like(x), where=x > 0))
    return (p_m[:, None] * x * logs).sum()


def information(joint):
    logs = np.log2(np.divide(joint, np.outer(joint.sum(1), joint.sum(0)), out=np.ones_like(joint), where=joint > 0))
    return (joint * logs).sum()


copy = np.zeros((2, 2, 2))
copy[0, :, 0] = copy[1, :, 1] = 0.25
rng = np.random.default_rng(0)
for name, joint in (('M is a copy of X', copy), ('random', rng.dirichlet(np.full(8, 0.4)).reshape(2, 2, 2))):
    distribution = Distribution([''.join(map(str, o)) for o in product((0, 1), repeat=3)], joint.ravel())
    swapped = joint.transpose(1, 0, 2)
    parts = [information(joint.sum(1)), information(joint.sum(0))]
    losses = [deficiency(joint), deficiency(swapped)]
    redundancy = min(parts[0] - losses[0], parts[1] - losses[1])
    wrong = min(parts[0] - losses[0] / np.log(2), parts[1] - losses[1] / np.log(2))
    p_m = joint.sum((0, 1))
    own = weighted_output_kl_deficiency(joint.sum(0).T / p_m[:, None], joint.sum(1).T / p_m[:, None], p_m)
    pid = PID_Delta(distribution)
    seen = {key: float(pid.get_pi(key)) for key in (((0,), (1,)), ((0,),), ((1,),))}
    print(f'{name}: redundancy {seen[((0,), (1,))]:.4f}, unique {seen[((0,),)]:.4f} and {seen[((1,),)]:.4f}; by the definition '
          f'{redundancy:.4f}, {parts[0] - redundancy:.4f} and {parts[1] - redundancy:.4f}')  # fmt: skip
    print(f'    deficiency of the package {own:.4f}, by the definition {losses[0]:.4f} bits')
    assert np.isclose(own, losses[0], atol=1e-4) and redundancy > -1e-6, 'the definition is wrong'
    assert np.isclose(seen[((0,), (1,))], wrong, atol=1e-3) and wrong < redundancy - 0.01, 'this has changed'
    if name != 'random':
        assert seen[((0,), (1,))] < -0.4 and seen[((1,),)] > 0.4 and abs(redundancy) < 1e-4, 'this has changed'
PY
