r"""Graphs of the six families of ECHO (ICLR 2026), with diameters of 17 to 40."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from torch_geometric.data import Data

from pyg_topomask.apps.datasets.random_graphs import GraphProperties

__all__ = ['load_families']

_FAMILIES = ('line', 'ladder', 'grid', 'tree', 'caterpillar', 'lobster')
#: The numbers of graphs, a quarter of those of ECHO, and the diameters, which are those of ECHO.
_PARTS = {'train': slice(0, 2000), 'val': slice(2000, 2260), 'test': slice(2260, 2520)}
_LEAST, _MOST = 17, 40


def load_families(property: str, part: str, most: int | None = None) -> list[Data]:
    r"""Returns the graphs of a part, or the first of them."""
    kept = np.flatnonzero(_diameters())[_PARTS[part]][:most]
    graphs = _drawn(property)
    return [
        Data(x=graphs[int(each)].x, edge_index=graphs[int(each)].edge_index, y=graphs[int(each)].y.flatten()) for each in kept
    ]


@lru_cache(maxsize=1)
def _drawn(property: str) -> GraphProperties:
    r"""Returns the graphs, which are the same for every property, as the seed is."""
    return GraphProperties(property=property, families=_FAMILIES, num_graphs=8000, least=18, most=120)


@lru_cache
def _diameters() -> np.ndarray:
    r"""Returns which graphs have a diameter of ECHO."""
    diameters = np.array([float(data.y) for data in _drawn('diameter')])
    return (diameters >= _LEAST) & (diameters <= _MOST)
