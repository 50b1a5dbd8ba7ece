r"""Checks of the data that transforms are given."""

from __future__ import annotations

from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.data.data import BaseData

from pyg_topomask.errors import ArgumentError
from pyg_topomask.graphs.graph import Graph, is_homogeneous, remedy_of_data


def check_homogeneous(data: Data) -> None:
    r"""Raises an error unless the argument is :class:`~torch_geometric.data.Data`, for example for heterogeneous data."""
    if not is_homogeneous(data):
        raise ArgumentError('data', type(data).__name__, 'torch_geometric.data.Data', remedy_of_data(data))


def check_unbatched(data: BaseData) -> None:
    r"""Raises an error for a batch, even of one graph. Its slices and pointers would not match data that a transform stores or
    removes.
    """
    if any('batch' in store for store in data.stores):
        raise ArgumentError('data', 'a batch', 'single graphs: apply the transform before batching')


def check_single(data: Data) -> None:
    r"""Raises an error unless data is homogeneous and no batch."""
    check_homogeneous(data)
    check_unbatched(data)


def check_has_positions(data: Data) -> None:
    r"""Raises an error unless data is homogeneous and has a tensor :obj:`pos`."""
    check_homogeneous(data)
    if not isinstance(getattr(data, 'pos', None), Tensor):
        raise ArgumentError('data', f'{data} without a tensor pos', 'data with positions')


def check_has_edges(data: Data) -> None:
    r"""Raises an error unless data is homogeneous, no batch, and has :obj:`edge_index` or :obj:`adj_t`."""
    check_single(data)
    if data.edge_index is None and 'adj_t' not in data:
        given = f'the attributes {", ".join(data.keys()) or "none"}'
        raise ArgumentError('data', given, 'data with edge_index or adj_t', 'KNNGraph adds edges between nearest neighbors')


def single_graph(data: Data) -> Graph:
    r"""Returns the graph of data that :func:`check_has_edges` accepts."""
    check_has_edges(data)
    return Graph.from_data(data)
