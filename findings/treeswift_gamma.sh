#!/usr/bin/env bash
# treeswift 1.1.51: gamma_statistic takes the times of speciations for the times between them, so that the statistic has no meaning.
#
# Expected: the gamma statistic of Pybus and Harvey (2000). It is a function of the internode distances g_2, ..., g_n: g_k is the time with
# k lineages. It does not depend on a scale of time, and has mean 0 and variance 1 for trees of a pure birth process.
# Seen: the formula is applied to the times of the branching nodes, from the root on, instead of their differences. The time
# from the last branching to the tips is not in it at all. dendropy has the right value. Trees with early branching, whose gamma is
# negative, and with late branching, whose gamma is positive, get similar values.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet treeswift==1.1.51 dendropy==5.1.3 numpy==2.4.6
cd "$folder"
"$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import dendropy
import numpy as np
import treeswift
from dendropy.calculate.treemeasure import pybus_harvey_gamma

print(f'treeswift {version("treeswift")}, dendropy {version("dendropy")}')


def by_hand(times, height):
    # The times of the branching nodes, with the root at 0: k lineages exist from one to the next.
    g = np.diff([*sorted(times), height])
    n = len(g) + 1
    weighted = np.arange(2, n + 1) * g
    total = weighted.sum()
    return (weighted[:-1].cumsum().sum() / (n - 2) - total / 2) / (total * np.sqrt(1 / (12 * (n - 2))))


def caterpillar(times, height):
    newick = f'T{len(times)}:{height - times[-1]}'
    for i in reversed(range(len(times))):
        newick = f'(T{i}:{height - times[i]},{newick})'
        newick += f':{times[i] - times[i - 1]}' if i else ''
    return newick + ';'


def pure_birth(n, rng):
    waits = rng.exponential(1 / np.arange(2, n + 1))
    return np.concatenate([[0], waits[:-1].cumsum()]), waits.sum()


rng = np.random.default_rng(0)
cases = {'early branching': (np.arange(9) * 0.1, 10.0), 'late branching': (np.r_[0, 9 + np.arange(8) * 0.1], 10.0)}
cases |= {f'pure birth {i}': pure_birth(30, rng) for i in range(200)}
seen, right = [], []
for name, (times, height) in cases.items():
    newick = caterpillar(times, height)
    right.append(by_hand(times, height))
    seen.append(treeswift.read_tree_newick(newick).gamma_statistic())
    other = pybus_harvey_gamma(dendropy.Tree.get(data=newick, schema='newick'), prec=1e-4)
    assert np.isclose(other, right[-1], atol=1e-4), 'this has changed'
    if 'branching' in name:
        print(f'{name}: treeswift {seen[-1]:.3f}, dendropy {other:.3f}, by the definition {right[-1]:.3f}')
early, late = seen[:2]
births, expected = np.array(seen[2:]), np.array(right[2:])
print(f'200 pure birth trees of 30 tips: mean {births.mean():.2f}, deviation {births.std():.2f}. '
      f'By the definition {expected.mean():.2f} and {expected.std():.2f}')  # fmt: skip
assert right[0] < -4 and right[1] > 2 and abs(early - right[0]) > 1 and abs(late - right[1]) > 1, 'this has changed'
assert abs(expected.mean()) < 0.3 and 0.8 < expected.std() < 1.2 and births.mean() < -2, 'this has changed'
PY
