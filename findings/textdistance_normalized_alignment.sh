#!/usr/bin/env bash
# textdistance 4.6.3: normalized alignment scores are not between 0 and 1.
#
# Expected: normalized_similarity of NeedlemanWunsch and Gotoh is to "get similarity from 0 to 1", and normalized_distance to
# "get distance from 0 to 1". Equal texts have a similarity of 1 and a distance of 0, and both sum to 1.
# Seen: NeedlemanWunsch divides the similarity by 2 * maximum, and the distance by maximum - minimum, and subtracts the least
# score from both the score and minus the score. That fits only if gap_cost is 1: with 2, equal texts have a similarity of 1.5
# and a distance of 0.33. Gotoh takes minus the length of the shorter text as the least score, though gaps cost more: with all
# defaults, a similarity is -1.5, and the distance 2.5.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet textdistance==4.6.3 numpy==2.4.6
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

from textdistance import Gotoh, NeedlemanWunsch

print(f'textdistance {version("textdistance")}')
for algorithm, a, b, valid in (
    (NeedlemanWunsch(), 'test', 'test', True),
    (NeedlemanWunsch(), 'test', 'tents', True),
    (NeedlemanWunsch(gap_cost=2), 'test', 'test', False),
    (NeedlemanWunsch(gap_cost=2), 'test', 'tents', False),
    (NeedlemanWunsch(gap_cost=2), 'a', 'bcde', False),
    (NeedlemanWunsch(gap_cost=0.5), 'test', 'test', False),
    (Gotoh(), 'test', 'test', True),
    (Gotoh(), 'a', 'abcdefghijkl', False),
):
    similarity, distance = algorithm.normalized_similarity(a, b), algorithm.normalized_distance(a, b)
    name = type(algorithm).__name__ + (f', gap_cost {algorithm.gap_cost}' if hasattr(algorithm, 'gap_cost') else '')
    print(f'{name}: {a} and {b}: score {algorithm.similarity(a, b):.2f}, normalized similarity {similarity:.3f}, '
          f'normalized distance {distance:.3f}')  # fmt: skip
    inside = -1e-9 <= similarity <= 1 + 1e-9 and -1e-9 <= distance <= 1 + 1e-9
    best = a != b or (abs(similarity - 1) < 1e-9 and abs(distance) < 1e-9)
    sums = abs(similarity + distance - 1) < 1e-9
    assert (inside and best and sums) == valid, 'this has changed'
PY
