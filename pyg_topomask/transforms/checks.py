r"""Shared checks of transforms."""

from __future__ import annotations

from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.data.data import BaseData

from pyg_topomask.errors import ArgumentError
from pyg_topomask.graphs.graph import Graph


def check_homogeneous(data: Data) -> None:
    r"""Raises a :class:`ValueError` unless the argument is :class:`~torch_geometric.data.Data`, for example for heterogeneous
    data."""
    if not isinstance(data, Data):
        raise ArgumentError('data', type(data).__name__, 'torch_geometric.data.Data (of HeteroData, use to_homogeneous())')


def check_has_edges(data: Data) -> None:
    r"""Raises a :class:`ValueError` for data without :obj:`edge_index`, which may have shape :obj:`[2, 0]`."""
    if 'edge_index' not in data and 'adj_t' not in data:
        raise ArgumentError(
            'data',
            f'the attributes {", ".join(data.keys()) or "none"}',
            'data with edge_index or adj_t',
            'KNNGraph adds edges between nearest neighbors',
        )


def check_has_positions(data: Data) -> None:
    r"""Raises a :class:`ValueError` unless data have a tensor :obj:`pos`."""
    if not isinstance(getattr(data, 'pos', None), Tensor):
        raise ArgumentError('data', f'{data} without a tensor pos', 'data with positions')


def check_unbatched(data: BaseData) -> None:
    r"""Raises a :class:`ValueError` for a batch, even of one graph. Its slices and pointers would not match data that a
    transform stores or removes.
    """
    if 'batch' in data:
        raise ArgumentError('data', 'a batch', 'single graphs: apply the transform before batching')


def single_graph(data: Data) -> Graph:
    r"""Returns the graph of data that is homogeneous, no batch, and has edges, and raises a :class:`ValueError` for others."""
    check_homogeneous(data)
    check_unbatched(data)
    check_has_edges(data)
    return Graph.from_data(data)
