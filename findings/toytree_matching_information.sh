#!/usr/bin/env bash
# toytree 3.0.11: the matching split information distance is the mutual clustering information distance.
#
# Expected: get_treedist_rfg_msi is to "return the Matching Split Information Distance". Two splits share the phylogenetic
# information of the largest split that is in both (Smith 2020), and get_treedist_rfg_mci shares the mutual clustering
# information, another distance. The package has the first one, too, as get_trees_matching_split_info_dist.
# Seen: get_treedist_rfg_msi calls the function of get_treedist_rfg_mci. Both always give the same number. Not normalized, it is
# about a quarter of the first one, and normalized, it is larger.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet toytree==3.0.11 numpy==2.4.6 scipy==1.17.1 pandas==3.1.1
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version
from math import log2, prod

import numpy as np
import toytree
from scipy.optimize import linear_sum_assignment
from toytree.distance._src.treedist_utils import get_trees_matching_split_info_dist

print(f'toytree {version("toytree")}')


def information(a, b):
    """Of a split of a and b leaves: minus the logarithm of the share of binary trees that have it."""
    def rooted(n):
        return prod(range(1, 2 * n - 2, 2))

    return -log2(rooted(a) * rooted(b) / rooted(a + b - 1)) if min(a, b) > 1 else 0


def by_definition(first, second):
    first, second = (list(tree.iter_bipartitions()) for tree in (first, second))
    pairs = np.array([[max(information(len(set(a) & set(c)), len(set(b) & set(d))), information(len(set(a) & set(d)),
                           len(set(b) & set(c)))) for c, d in second] for a, b in first])  # fmt: skip
    total = sum(information(len(a), len(b)) for a, b in [*first, *second])
    distance = total - 2 * pairs[linear_sum_assignment(pairs, maximize=True)].sum()
    return distance, distance / total


for seed in range(5):
    pair = [toytree.rtree.unittree(10, seed=seed), toytree.rtree.unittree(10, seed=seed + 100)]
    right = by_definition(*pair)
    for normalize in (False, True):
        distances = toytree.distance.get_treedist_rfg_msi, toytree.distance.get_treedist_rfg_mci
        msi, mci = (distance(*pair, normalize=normalize) for distance in distances)
        other = get_trees_matching_split_info_dist(*pair, normalize=normalize)
        print(f'random trees {seed}, normalize={normalize}: rfg_msi {msi:.3f}, rfg_mci {mci:.3f}, '
              f'get_trees_matching_split_info_dist {other:.3f}, by the definition {right[normalize]:.3f}')  # fmt: skip
        assert msi == mci and np.isclose(other, right[normalize]) and not np.isclose(msi, other), 'this has changed'
PY
