r"""What transforms accept alike."""

from __future__ import annotations

from torch_geometric.data import Data
from torch_geometric.data.data import BaseData

from pyg_topomask.errors import ArgumentError


def check_homogeneous(data: Data) -> None:
    r"""Raises a :class:`ValueError` for what is not :class:`~torch_geometric.data.Data`, as heterogeneous data."""
    if not isinstance(data, Data):
        raise ArgumentError(
            'data', type(data).__name__, 'torch_geometric.data.Data (of HeteroData, use to_homogeneous())', verb='is'
        )


def check_edges(data: Data) -> None:
    r"""Raises a :class:`ValueError` for data without edges; a graph of none has :obj:`edge_index` of shape :obj:`[2, 0]`."""
    if 'edge_index' not in data and 'adj_t' not in data:
        raise ArgumentError(
            'data',
            f'the attributes {", ".join(data.keys()) or "none"}',
            'data with edge_index or adj_t',
            'KNNGraph makes edges between near positions',
            verb='is',
        )


def check_unbatched(data: BaseData) -> None:
    r"""Raises a :class:`ValueError` for a batch, also of one graph: what is stored on it or removed from it, its slices and
    pointers do not know.
    """
    if 'batch' in data:
        raise ArgumentError('data', 'a batch', 'single graphs: apply the transform before batching')
