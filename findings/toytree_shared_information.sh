#!/usr/bin/env bash
# toytree 3.0.11: identical splits share an information of minus infinity, so that the distance of a tree to itself is 84%.
#
# Expected: get_treedist_rfg_spi is the generalized Robinson-Foulds distance by shared phylogenetic information of Smith (2020).
# A split shares all of its information with itself: the docstring of _get_two_splits_shared_phylo_info says 5.044 for the
# splits 012|34567. So the distance of a tree to itself is 0, and equal splits of two trees are matched with each other.
# Seen: the information of two splits needs the number of rooted trees of one leaf, which is (2 * 1 - 3)!! = (-1)!! = 1, but
# factorial2(-1) of scipy is 0. Its logarithm makes the shared information of two equal splits -inf, and the best matching
# avoids all pairs of equal splits. The distance of a tree to itself is large, and it may be larger than that of two different
# trees.
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
from scipy.special import factorial2
from toytree.distance._src.treedist_utils import _get_two_splits_shared_phylo_info

print(f'toytree {version("toytree")}')
leaves = 'abcdefgh'
trees = {
    'balanced': '(((a,b),(c,d)),((e,f),(g,h)));',
    'caterpillar': '(((((((a,b),c),d),e),f),g),h);',
    'other': '(((a,c),(b,e)),((d,g),(f,h)));',
}


def rooted(n):
    """The number of rooted binary trees of n leaves: 1, 1, 3, 15, ..."""
    return prod(range(1, 2 * n - 2, 2))


def information(*sizes):
    """Of two compatible splits, the leaves are in three parts, and of one split in two."""
    n = sum(sizes)
    trees = rooted(sizes[0]) * rooted(sizes[-1]) * (rooted(sizes[1] + 1) if len(sizes) == 3 else 1)
    return -log2(trees / rooted(n - 1))


def splits(newick):
    """One side of each split: the one without the last leaf."""
    stack, found = [], set()
    for symbol in newick:
        if symbol == '(':
            stack.append(set())
        elif symbol == ')':
            side = stack.pop()
            if stack:
                stack[-1] |= side
            side = side if 'h' not in side else set(leaves) - side
            if 1 < len(side) < len(leaves) - 1:
                found.add(frozenset(side))
        elif symbol in leaves:
            stack[-1].add(symbol)
    return found


def shared(a, b):
    n = len(leaves)
    single = information(len(a), n - len(a)) + information(len(b), n - len(b))
    if a == b:
        return single / 2
    if a < b or b < a:
        return single - information(len(a & b), len(a ^ b), n - len(a | b))
    return single - information(len(a), n - len(a | b), len(b)) if not a & b else 0


def by_definition(first, second):
    first, second = splits(first), splits(second)
    pairs = np.array([[shared(a, b) for b in second] for a in first])
    total = sum(information(len(a), len(leaves) - len(a)) for a in [*first, *second])
    return total - 2 * pairs[linear_sum_assignment(pairs, maximize=True)].sum(), total


split, other = ((0, 1, 2), (3, 4, 5, 6, 7)), ((0, 1, 2, 3), (4, 5, 6, 7))
equal, different = (_get_two_splits_shared_phylo_info(split, x) for x in (split, other))
right = information(3, 5), shared(frozenset('abc'), frozenset('abcd'))
print(f'scipy: factorial2(-1) = {factorial2(-1)}. Information shared by 012|34567 with itself {equal}, by the definition '
      f'{right[0]:.3f}. With 0123|4567 {different:.3f}, by the definition {right[1]:.3f}')  # fmt: skip
assert equal == -np.inf and np.isclose(right[0], 5.0443941) and np.isclose(different, right[1]), 'this has changed'

for one, two in (('balanced', 'balanced'), ('caterpillar', 'caterpillar'), ('balanced', 'caterpillar'), ('balanced', 'other')):
    pair = [toytree.tree(trees[name]) for name in (one, two)]
    seen, share = (toytree.distance.get_treedist_rfg_spi(*pair, normalize=normalize) for normalize in (False, True))
    right, total = by_definition(trees[one], trees[two])
    print(f'{one} and {two}: distance {seen:.2f}, normalized {share:.0%}. By the definition {right:.2f}, {right / total:.0%}')
    assert np.isclose(seen, right) == (two == 'other'), 'this has changed'
    assert (abs(right) < 1e-9 and share > 0.5) == (one == two), 'this has changed'
PY
