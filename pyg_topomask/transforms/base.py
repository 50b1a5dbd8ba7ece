r"""What transforms share: one graph or a list of graphs, checks of data, and graphs of a list joined into few large ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from copy import copy
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.data.data import BaseData
from torch_geometric.transforms import BaseTransform

from pyg_topomask.errors import ArgumentError
from pyg_topomask.graphs.edges import attribute_of, edge_weights_of
from pyg_topomask.graphs.graph import Graph, is_homogeneous, remedy_of_data
from pyg_topomask.utils.checks import INTEGERS
from pyg_topomask.utils.options import instance_of


class GraphTransform(BaseTransform):
    r"""A transform that takes one graph and returns it, or takes a list of graphs and returns a list. The numbers in a list are
    those of one graph at a time. It never draws from a global generator.
    """

    def __new__(cls, *args: Any, **kwargs: Any) -> GraphTransform:
        if args and isinstance(args[0], BaseData):  # Compose calls what it is given
            raise ArgumentError(cls.__name__, 'data for the class', 'arguments of the transform', instance_of(cls))
        return super().__new__(cls)

    def __call__(self, data: Any) -> Any:
        if isinstance(data, (list, tuple)):
            return self.forward_many([copy(graph) for graph in data])
        return super().__call__(data)

    def forward_many(self, graphs: list[Any]) -> list[Any]:
        r"""Transforms copies of graphs. Subclasses may treat all of them at once."""
        return [self.forward(graph) for graph in graphs]

    def __repr__(self) -> str:
        settings = (f'{name}={value!r}' for name, value in vars(self).items() if not name.startswith('_'))
        return f'{type(self).__name__}({", ".join(settings)})'


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
    if attribute_of(data, 'edge_index') is None and 'adj_t' not in data:
        given = f'the attributes {", ".join(data.keys()) or "none"}'
        raise ArgumentError('data', given, 'data with edge_index or adj_t', 'KNNGraph adds edges between nearest neighbors')


def single_graph(data: Data) -> Graph:
    r"""Returns the graph of data that :func:`check_has_edges` accepts."""
    check_has_edges(data)
    return Graph.from_data(data)


# Graphs are joined until they have so many nodes, which bounds the working memory.
_NODES = 2**14


def joint_graphs(
    graphs: Sequence[Data], kind: Callable[[int], Hashable] = lambda num_nodes: None
) -> Iterator[tuple[list[Data], Graph]]:
    r"""Yields the data of some graphs, and one :class:`~pyg_topomask.Graph` of all of these. Graphs are joined if :obj:`kind`
    of their numbers of nodes is equal. Raises a :class:`ValueError` if a graph is a batch, not homogeneous, or has no edges.
    """
    pending: dict[Hashable, tuple[list[Data], list[int], list[Any]]] = {}
    waiting = Counter[Hashable]()
    for data in graphs:
        check_has_edges(data)
        num_nodes = data.num_nodes or 0
        _, weight = edge_weights_of(data)
        key = _kind_of_edges(data, weight), kind(num_nodes)
        members, sizes, weights = pending.setdefault(key, ([], [], []))
        members.append(data)
        sizes.append(num_nodes)
        weights.append(weight)
        waiting[key] += num_nodes
        if waiting[key] >= _NODES:
            yield _joined(*pending.pop(key))
            del waiting[key]
    for alike in pending.values():
        yield _joined(*alike)


def _kind_of_edges(data: Data, weight: Any) -> Hashable:
    r"""Returns what graphs must have in common to be joined. A graph in an unusual form stays alone."""
    edge_index = attribute_of(data, 'edge_index')
    if not isinstance(edge_index, Tensor) or edge_index.shape[:-1] != (2,) or edge_index.dtype not in INTEGERS:
        return id(data)
    if weight is None:
        return edge_index.device, None
    plain = isinstance(weight, Tensor) and weight.is_floating_point() and weight.shape == edge_index.shape[1:]
    return (edge_index.device, weight.dtype) if plain else id(data)


def _joined(graphs: list[Data], sizes: list[int], weights: list[Any]) -> tuple[list[Data], Graph]:
    if len(graphs) == 1:
        return graphs, single_graph(graphs[0])
    edges = [attribute_of(data, 'edge_index') for data in graphs]
    local, num_edges = torch.cat(edges, dim=1), torch.tensor([edge_index.size(1) for edge_index in edges])
    num_nodes = torch.tensor(sizes)
    first, size = (
        number.repeat_interleave(num_edges).to(local.device) for number in (num_nodes.cumsum(0) - num_nodes, num_nodes)
    )
    edge_index = (local + first).masked_fill_((local < 0) | (local >= size), -1)
    weight = None if weights[0] is None else torch.cat(weights)
    batch = torch.arange(len(graphs)).repeat_interleave(num_nodes).to(local.device)
    try:
        return graphs, Graph(edge_index, sum(sizes), weight, batch, len(graphs))
    except ArgumentError:
        for data in graphs:
            single_graph(data)  # raises an error that names the edge in its graph
        raise
