#!/usr/bin/env bash
# pykeen 1.11.1: RotatEInteraction ignores p and power_norm: all of them score with the norm of order 2.
#
# Expected: p is "the norm used with torch.linalg.vector_norm. Typically is 1 or 2", and power_norm is "whether to use the p-th
# power of the Lp norm". "The parameter p and power_norm are directly passed to NormBasedInteraction". The score is minus this
# norm of h * r - t. TransE and PairRE do this.
# Seen: forward calls negative_norm with p=2 and power_norm=False. So RotatEInteraction(p=1) and
# RotatEInteraction(power_norm=True) have the scores of the default. With another p, triples are ranked in another order.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet torch==2.13.0 numpy==2.4.6 scipy==1.17.1 scikit-learn==1.9.1 pandas==3.1.1 \
  class-resolver==0.8.2 docdata==0.0.5 PyYAML==6.0.4 tqdm==4.70.1 pystow==0.10.3 more-itertools==10.8.0 requests==2.32.5 \
  tabulate==0.9.0 click==8.3.1 more-click==0.1.3
# The interactions need no other of its requirements.
"$folder/venv/bin/pip" install --quiet --no-deps pykeen==1.11.1 torch-ppr==0.0.8 torch-max-mem==0.1.6
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import numpy as np
import torch
from pykeen.nn.modules import PairREInteraction, RotatEInteraction

print(f'pykeen {version("pykeen")}')
rng = np.random.default_rng(0)
h, t = rng.normal(size=(2, 40, 6)) + 1j * rng.normal(size=(2, 40, 6))
r = np.exp(1j * rng.uniform(-np.pi, np.pi, (40, 6)))
default = RotatEInteraction()(*map(torch.as_tensor, (h, r, t))).numpy()
for p, power in ((2, False), (1, False), (3, False), (2, True), (1, True)):
    right = -(np.abs(h * r - t) ** p).sum(1) ** (1 if power else 1 / p)
    seen = RotatEInteraction(p=p, power_norm=power)(*map(torch.as_tensor, (h, r, t))).numpy()
    ones = np.ones((40, 6))
    pair = PairREInteraction(p=p, power_norm=power)(*(torch.as_tensor(x) for x in (h.real,)), (torch.as_tensor(ones),) * 2,
                                                    torch.as_tensor(t.real)).numpy()  # fmt: skip
    order = (np.argsort(seen) != np.argsort(right)).sum()
    print(f'p = {p}, power_norm = {power}: {seen[:3].round(3)}, by the definition {right[:3].round(3)}, '
          f'{order} of 40 triples have another rank')  # fmt: skip
    assert np.allclose(pair, -(np.abs(h.real - t.real) ** p).sum(1) ** (1 if power else 1 / p)), 'the definition is wrong'
    assert np.array_equal(seen, default), 'this has changed'
    assert np.allclose(seen, right) == (p == 2 and not power), 'this has changed'
    assert p == 2 or order > 0, 'this has changed'
PY
