#!/usr/bin/env bash
# spopt 0.7.0: Skater drops the links between neighbors with equal attributes, and takes their areas for islands.
#
# Expected: regions are parts of the spanning tree of the contiguity graph (Assuncao et al. 2006, which the documentation cites). Neighbors
# with equal attributes have the smallest dissimilarity, 0, and belong together first. Of a connected map, n_clusters regions are formed.
# Seen: the dissimilarities of the links are a sparse matrix without entries of 0. A link between equal neighbors is gone, as if they did
# not touch. A map of two halves, one with 0 and one with 1, becomes 32 regions instead of 2, most of them with a single area, and there is
# a warning that "the graph is disconnected", which it is not. Counts with few values have many such links. With differences of 1e-9 between
# the areas there are as many regions as wanted.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet spopt==0.7.0 libpysal==4.14.1 numpy==2.4.6 scipy==1.17.1 pandas==3.1.1 scikit-learn==1.9.1 \
  geopandas==1.2.0 shapely==2.2.0 networkx==3.6.1
cd "$folder"
OMP_NUM_THREADS=1 "$folder/venv/bin/python" - <<'PY'
import warnings
from importlib.metadata import version

warnings.simplefilter('ignore')
import geopandas
import networkx as nx
import numpy as np
from libpysal.weights import lat2W
from shapely.geometry import box
from spopt.region import Skater

print(f'spopt {version("spopt")}')
size = 6
cells = [box(column, row, column + 1, row + 1) for row in range(size) for column in range(size)]
columns = np.tile(np.arange(size), size)


def regions(values, number):
    """Labels, and the texts of the warnings about islands."""
    w = lat2W(size, size)
    assert w.n_components == 1, 'the map is not connected'
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter('always')
        model = Skater(geopandas.GeoDataFrame({'value': values}, geometry=cells), w, ['value'], n_clusters=number)
        model.solve()
    return model.labels_, [str(warning.message) for warning in caught if 'disconnected' in str(warning.message)]


rng = np.random.default_rng(0)
graph = lat2W(size, size).to_networkx()
halves = (columns >= 3).astype(float)
for name, values, number in (('two halves', halves, 2), ('counts from 0 to 3', rng.integers(0, 4, size**2).astype(float), 4)):
    labels, texts = regions(values, number)
    distinct, none = regions(values + 1e-9 * rng.random(size**2), number)
    equal = sum(values[u] == values[v] for u, v in graph.edges)
    forest = graph.edge_subgraph([edge for edge in graph.edges if values[edge[0]] != values[edge[1]]])
    parts = nx.number_connected_components(forest) + size**2 - len(forest)
    singles = (np.bincount(labels) == 1).sum()
    print(f'{name}: {number} regions wanted, {labels.max() + 1} found, {singles} with one area. {equal} of {len(graph.edges)} links have '
          f'equal ends, {parts} parts without them. Warning: {texts}. Almost the same values: {distinct.max() + 1} regions')  # fmt: skip
    assert labels.max() + 1 == number + parts > number and len(texts) == 1, 'this has changed'
    assert distinct.max() + 1 == number and not none, 'this has changed'
    if values is halves:
        assert len(set(zip(distinct, halves))) == 2 and singles > 20, 'this has changed'
PY
