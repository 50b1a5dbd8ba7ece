r"""The graph of a layer's forward pass."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.typing import Adj
from torch_geometric.utils import is_sparse

from pyg_topomask.errors import ArgumentError
from pyg_topomask.graphs.graph import Graph
from pyg_topomask.masks import Mask

T = TypeVar('T')


def as_graph(
    x: Tensor,
    edge_index: Adj | None = None,
    edge_weight: Tensor | None = None,
    batch: Tensor | None = None,
    graph: Graph | Data | None = None,
) -> Graph:
    r"""Returns the graph of a layer's forward pass. If :obj:`graph` is given, checks that it fits the node features, and that
    each other argument agrees with it or is :obj:`None`.
    """
    if graph is None:
        return Graph.from_tensors(edge_index, x.size(0), edge_weight, batch)
    graph = Graph.of(graph)
    if batch is not None and batch is not graph.batch and not _equal(batch, graph.segments.index):
        raise ArgumentError(
            'batch',
            f'another assignment of nodes to graphs than that of graph, which has {graph.num_graphs} graphs',
            'that of graph, or graph=Graph.from_tensors(edge_index, num_nodes, edge_weight, batch)',
        )
    # Tensors of the graph's data are the same objects. torch.compile compares only identities.
    if not torch.compiler.is_compiling():
        if edge_index is not None and edge_index is not graph.edge_index:
            sparse = is_sparse(edge_index)
            if not (graph.has_edges_of(edge_index) if sparse else _equal(edge_index, graph.edge_index)):
                other = 'other edges or weights' if sparse else 'other edges'
                raise ArgumentError(
                    'edge_index', f'{other} than those of graph, which has {graph.num_edges}', 'these, and None'
                )
        if edge_weight is not None and edge_weight is not graph.edge_weight:
            accepted = 'these, and None, or graph=Graph.from_tensors(edge_index, num_nodes, edge_weight, batch)'
            if not _equal(edge_weight, graph.weight):
                raise ArgumentError('edge_weight', 'other weights than those of graph', accepted)
            if edge_weight.requires_grad:
                raise ArgumentError('edge_weight', 'a learned tensor that is not that of graph', accepted)
    if x.size(0) != graph.num_nodes:
        raise ArgumentError('x', f'shape {tuple(x.shape)}', f'[{graph.num_nodes}, channels]')
    return graph


def compiled_if_prepared(
    function: Callable[..., T], graph: Graph | Data | None = None, mask: Mask | None = None
) -> Callable[..., T]:
    r"""Returns the function. Under ``torch.compile``, it runs eagerly if it checks a new graph or prepares the mask, so that it
    breaks what is compiled only once.
    """
    held = isinstance(graph, Graph) and (mask is None or graph.has_state(mask))
    return function if held or not torch.compiler.is_dynamo_compiling() else partial(_eagerly, function)


@torch.compiler.disable
def _eagerly(function: Callable[..., T], *arguments: Any) -> T:
    return function(*arguments)


def _equal(first: Any, second: Tensor) -> bool:
    return isinstance(first, Tensor) and first.shape == second.shape and bool((first == second).all())
