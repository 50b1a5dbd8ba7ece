#!/usr/bin/env bash
# deeprobust 0.2.11: the log likelihood of a power law of degrees, as Metattack tests it, has a wrong sign, and ratios twice as large.
#
# Expected: degree_sequence_log_likelihood has "the (maximum) log likelihood of the Powerlaw distribution fit on a degree distribution",
# for "the likelihood ratio test proposed by Zuegner et al. 2018" (docstrings, deeprobust.graph.utils). Theirs is n log(alpha) + n alpha
# log(d_min) - (alpha + 1) * the sum of log(d), for the degrees d >= d_min. Nettack has that in targeted_attack/nettack.py of the same
# package.
# Seen: compute_log_likelihood of deeprobust/graph/utils.py adds the last term. So a sequence is the more likely, the greater its degrees,
# also if no power law has them, and the log likelihoods are above zero. The ratio of the test, for which Metattack has the same threshold
# as Nettack, 0.004, is more than twice as large. One edge more in a scale-free graph is forbidden, which the test allows.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet torch==2.13.0 numpy==2.4.6 scipy==1.17.1 scikit-learn==1.9.1 networkx==3.6.1
"$folder/venv/bin/pip" install --quiet --no-deps deeprobust==0.2.11
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import networkx as nx
import numpy as np
import torch
from deeprobust.graph.utils import degree_sequence_log_likelihood

torch.set_default_dtype(torch.float64)
print(f'deeprobust {version("deeprobust")}')


def log_likelihood(degrees, sign=-1):
    kept = degrees[degrees >= 2]
    n, total = len(kept), np.log(kept).sum()
    alpha = 1 + n / (total - n * np.log(1.5))
    return n * np.log(alpha) + n * alpha * np.log(2) + sign * (alpha + 1) * total


def utils(degrees):
    return float(degree_sequence_log_likelihood(torch.tensor(degrees), torch.tensor(2.0))[0])


power_law = np.array([1.0, 1, 2, 2, 2, 2, 2, 3, 3, 4, 5, 9])
random = np.array([8.0, 8, 9, 9, 9, 10, 10, 10, 11, 11, 12, 12])
for name, degrees in (('a power law', power_law), ('random edges', random)):
    print(f'log likelihood of the degrees of {name}: {utils(degrees):.2f}, by the definition {log_likelihood(degrees):.2f}')
    assert np.isclose(utils(degrees), log_likelihood(degrees, sign=1)) and utils(degrees) > 0 > log_likelihood(degrees), 'this has changed'
assert utils(random) > utils(power_law) and log_likelihood(random) < log_likelihood(power_law), 'this has changed'

old = nx.to_numpy_array(nx.barabasi_albert_graph(300, 2, seed=0)).sum(0)
new = old.copy()
for count, (i, j) in enumerate(([191, 255], [153, 80], [92, 11], [5, 243]), start=1):  # Pairs without an edge.
    new[[i, j]] += 1
    ratios = [2 * (f(old) + f(new) - f(np.concatenate([old, new]))) for f in (utils, log_likelihood)]
    print(f'a scale-free graph, {count} edges more: ratio {ratios[0]:.4f}, by the definition {ratios[1]:.4f}')
    assert ratios[0] > 2 * ratios[1] > 0, 'this has changed'
    assert count > 1 or ratios[1] < 0.004 < ratios[0], 'this has changed'
PY
