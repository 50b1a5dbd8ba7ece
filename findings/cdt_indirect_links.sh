#!/usr/bin/env bash
# cdt 0.6.0: clr has relative differences for z-scores, and aracne keeps every triangle of strong links, and depends on the order of nodes.
#
# Expected: clr and aracne are "Implementation of the Context Likelihood or Relatedness Network algorithm", and "of the ARACNE algorithm",
# with "Ref" to Faith et al. 2007, and Margolin et al. 2006 (docstrings of cdt.utils.graph). CLR: z = max(0, (M_ij - mean_i) / standard
# deviation_i). ARACNE: the weakest link of each triangle goes, with no tolerance. Links removed for the sake of other triangles still
# count, so that the order of the triangles makes no difference (Margolin et al.).
# Seen: cdt/utils/graph.py computes the standard deviations for clr, but divides by the means. aracne removes the weakest link of a
# triangle only if it is below an undocumented constant, W0=0.05, and not zero. So results depend on the unit of the weights: bits or
# nats. With all weights below W0, a link that is removed saves the next triangle from removals, so that they depend on the order of the
# nodes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet numpy==2.4.6 scipy==1.17.1 pandas==3.1.1 networkx==3.6.1 scikit-learn==1.9.1 statsmodels==0.15.0 \
  torch==2.13.0 joblib==1.6.0 tqdm==4.70.1 requests==2.34.2 skrebate==0.7 GPUtil==1.4.0 setuptools==84.2.1
"$folder/venv/bin/pip" install --quiet --no-deps cdt==0.6.0
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" -W ignore - <<'PY'
from importlib.metadata import version
from itertools import combinations

import numpy as np
from cdt.utils.graph import aracne, clr

print(f'cdt {version("cdt")}')
rng = np.random.default_rng(0)
matrix = rng.random((5, 5))
matrix = (matrix + matrix.T) / 2
np.fill_diagonal(matrix, 0)


def by_unit(matrix, unit):
    z = np.maximum(0, (matrix - matrix.mean(1, keepdims=True)) / unit.reshape(-1, 1))
    result = np.sqrt(z**2 + z.T**2)
    np.fill_diagonal(result, 0)
    return result


seen = clr(matrix.copy())
right, relative = by_unit(matrix, matrix.std(1)), by_unit(matrix, matrix.mean(1))
print(f'clr, first row: {seen[0].round(3)}, z-scores {right[0].round(3)}, relative differences {relative[0].round(3)}')
assert np.allclose(seen, relative) and np.abs(seen - right).max() > 0.5, 'this has changed'


def by_definition(matrix):
    result = matrix.copy()
    for triple in combinations(range(len(matrix)), 3):
        i, j = min(combinations(triple, 2), key=lambda pair: matrix[pair])
        if min(matrix[pair] for pair in combinations(triple, 2)) > 0:
            result[i, j] = result[j, i] = 0
    return result


def links(matrix):
    return [(int(i), int(j)) for i, j in zip(*np.nonzero(np.triu(matrix)))]


triangle = np.array([[0, 0.9, 0.5], [0.9, 0, 0.8], [0.5, 0.8, 0]])
for scale in (1, 0.05):
    found = links(aracne(scale * triangle))
    print(f'aracne, weights 0.9, 0.8 and 0.5, times {scale}: links {found}, by the definition {links(by_definition(scale * triangle))}')
    assert (len(found) == 3) == (scale == 1) and len(links(by_definition(scale * triangle))) == 2, 'this has changed'

small = np.zeros((4, 4))
for (i, j), weight in {(0, 1): 0.04, (0, 2): 0.03, (1, 2): 0.02, (1, 3): 0.01, (2, 3): 0.045}.items():
    small[i, j] = small[j, i] = weight
order = [1, 2, 3, 0]
forward, back = aracne(small.copy()), np.zeros((4, 4))
back[np.ix_(order, order)] = aracne(small[np.ix_(order, order)].copy())
print(f'aracne, two triangles: links {links(forward)}, with the nodes in another order {links(back)}, '
      f'by the definition {links(by_definition(small))}')  # fmt: skip
assert links(forward) == [(0, 1), (0, 2), (1, 3), (2, 3)] and links(back) == [(0, 1), (0, 2), (2, 3)], 'this has changed'
assert links(by_definition(small)) == [(0, 1), (0, 2), (2, 3)], 'the definition is wrong'
PY
