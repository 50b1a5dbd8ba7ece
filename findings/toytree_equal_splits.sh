#!/usr/bin/env bash
# toytree 3.0.11: equal splits leave out the edge of the tip itself, and inner nodes are in the result.
#
# Expected: get_equal_splits is the metric "sensu Redding and Mooers 2006". Of a tip, it is the sum of the lengths of the edges
# to the root, the first one in full, the next by 1/2, the next by 1/4, and so on. get_tip_level_diversification is 1 over it,
# the "tip-level diversification rates sensu Jetz 2012".
# Seen: the sum begins with the parent of a tip. So the edge of the tip, which counts most, is not in it: tips of an edge of 1
# and of 100 get the same rate, and tips next to the root get infinity. The sum is also made for inner nodes: the result has a
# row for each name of these, and one for the empty name.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet toytree==3.0.11 numpy==2.4.6 scipy==1.17.1 pandas==3.1.1
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version

import numpy as np
import toytree

print(f'toytree {version("toytree")}')
for newick, paths in (
    ('((a:1,b:100):3,((c:1,d:1):1.5,e:4):0.5);',
     {'a': [1, 3], 'b': [100, 3], 'c': [1, 1.5, 0.5], 'd': [1, 1.5, 0.5], 'e': [4, 0.5]}),
    ('(a:5,(b:2,c:2)bc:3);', {'a': [5], 'b': [2, 3], 'c': [2, 3]}),
):  # fmt: skip
    tree = toytree.tree(newick)
    splits, rates = toytree.pcm.get_equal_splits(tree), toytree.pcm.get_tip_level_diversification(tree)
    right = {tip: sum(length / 2**i for i, length in enumerate(path)) for tip, path in paths.items()}
    print(f'{newick}: rows {splits.index.tolist()}')
    for tip, path in paths.items():
        print(f'  {tip}: equal splits {splits[tip]:.3f}, by the definition {right[tip]:.3f}. '
              f'Rate {rates[tip]:.3f}, by the definition {1 / right[tip]:.3f}')  # fmt: skip
        without = sum(length / 2**i for i, length in enumerate(path[1:], 1))
        assert np.isclose(splits[tip], without) and not np.isclose(without, right[tip]), 'this has changed'
    assert len(splits) > tree.ntips and '' in splits.index, 'this has changed'
PY
