r"""Edges of a graph: their direction and normalization, checks, those of a grid, and the names of their weights on data."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from pyg_topomask.errors import ArgumentError, warn
from pyg_topomask.utils.checks import INTEGERS, assert_on_device, check_batch, check_choice, check_whole, described
from pyg_topomask.utils.functorch import is_exporting, outside_transforms

FLOWS = ('source_to_target', 'target_to_source')


def check_flow(flow: str) -> None:
    r"""Raises a :class:`ValueError` unless the flow is one of PyG's two directions of message passing."""
    check_choice(FLOWS, flow=flow)


def row_and_col(edge_index: Tensor, flow: str) -> tuple[Tensor, Tensor]:
    r"""Returns the row and the column of each edge in the adjacency matrix. Row :math:`i` contains the nodes that node
    :math:`i` attends to. With :obj:`"source_to_target"`, as in PyG, the row is the target of the edge and the column its
    source. With :obj:`"target_to_source"`, it is the reverse. The function is its own inverse.

    Example:
        >>> import torch
        >>> row_and_col(torch.tensor([[0], [1]]), 'source_to_target')
        (tensor([1]), tensor([0]))
    """
    check_flow(flow)
    source, target = edge_index
    return (target, source) if flow == 'source_to_target' else (source, target)


#: The normalizations of :meth:`Graph.normalized_weight <pyg_topomask.graphs.Graph.normalized_weight>`.
NORMALIZATIONS = ('sym', 'rw', None)


def check_normalization(normalization: str | None) -> None:
    r"""Raises a :class:`ValueError` unless a graph supports the normalization."""
    check_choice(NORMALIZATIONS, normalization=normalization)


def inverse_degree(degree: Tensor, normalization: str) -> Tensor:
    r"""Returns the inverse of each degree, or its square root for :obj:`"sym"`; 0 if the degree is 0."""
    positive = degree > 0
    safe = degree.masked_fill(~positive, 1.0)
    inverse = safe.reciprocal() if normalization == 'rw' else safe.rsqrt()
    return inverse * positive


def grid_edges(shape: Sequence[int], device: torch.device | None = None) -> Tensor:
    r"""Returns the edges between neighbors along each dimension of a grid of the given shape, in both directions, sorted by
    source and target. The nodes are in row-major order.

    Example:
        >>> grid_edges((2, 2))
        tensor([[0, 0, 1, 1, 2, 2, 3, 3],
                [1, 2, 0, 3, 0, 3, 1, 2]])
    """
    nodes = torch.arange(math.prod(shape), device=device).view(*shape)
    steps = [
        torch.stack([nodes.narrow(axis, 0, size - 1), nodes.narrow(axis, 1, size - 1)]).flatten(1)
        for axis, size in enumerate(shape)
        if size > 1
    ]
    pairs = torch.cat([nodes.new_empty(2, 0), *steps], dim=1)
    edge_index = torch.cat([pairs, pairs.flip(0)], dim=1)
    return edge_index[:, torch.argsort(edge_index[0] * max(nodes.numel(), 1) + edge_index[1])]


# The data types of whole numbers that edge weights may have.
_WHOLE = (*INTEGERS, torch.uint8, torch.int8, torch.int16)


@outside_transforms
def checked_edges(
    edge_index: Tensor, num_nodes: int, weight: Tensor | None, batch: Tensor | None
) -> tuple[Tensor, Tensor | None]:
    r"""Returns the edges and their weights as floating point numbers, if :func:`check_edges` accepts them."""
    if isinstance(weight, Tensor) and weight.dtype in _WHOLE:
        _check_is_no_batch(weight, num_nodes)
        weight = weight.to(torch.get_default_dtype())
    check_whole(0, num_nodes=num_nodes)
    if is_exporting():  # the program checks the edges that it is given
        return _checked(edge_index, num_nodes, weight, batch), weight
    check_edges(edge_index, num_nodes, weight, batch)
    return edge_index, weight


@torch.library.custom_op(
    'pyg_topomask::checked_edges',
    mutates_args=(),
    schema='(Tensor edge_index, SymInt num_nodes, Tensor? weight, Tensor? batch) -> Tensor',
)
def _checked(edge_index: Tensor, num_nodes: int, weight: Tensor | None, batch: Tensor | None) -> Tensor:
    check_edges(edge_index, num_nodes, weight, batch)
    return edge_index.clone()


@_checked.register_fake
def _(edge_index: Tensor, num_nodes: int, weight: Tensor | None, batch: Tensor | None) -> Tensor:
    return torch.empty_like(edge_index)


def check_edges(edge_index: Tensor, num_nodes: int, weight: Tensor | None, batch: Tensor | None) -> None:
    r"""Raises a :class:`ValueError` unless edges, weights and batch vector are valid for the number of nodes."""
    for name, given in (('edge_weight', weight), ('batch', batch)):
        if given is not None and not isinstance(given, Tensor):
            raise ArgumentError(name, described(given), 'a tensor, or None')
    if not isinstance(edge_index, Tensor) or edge_index.shape[:-1] != (2,) or edge_index.dtype not in INTEGERS:
        accepted = 'int32 and int64 tensors of shape [2, E]'
        raise ArgumentError('edge_index', described(edge_index), accepted, _remedy_of_edges(edge_index))
    least, most = map(int, edge_index.aminmax()) if edge_index.numel() > 0 else (0, -1)
    if least < 0 or most >= num_nodes:
        accepted = f'0 to {num_nodes - 1}' if num_nodes > 0 else 'no edges, as there are no nodes'
        remedy = '' if least < 0 else f'x, or num_nodes, needs a row for each of {most + 1} nodes'
        raise ArgumentError('edge_index', f'nodes {least} to {most}', accepted, remedy)
    if weight is not None:
        check_weight(weight, edge_index.size(1))
    if batch is not None:
        check_batch(batch, num_nodes)
        if edge_index.numel() > 0 and bool(batch.index_select(0, edge_index[0]).ne(batch.index_select(0, edge_index[1])).any()):
            raise ArgumentError('edge_index', 'an edge between two graphs of the batch', 'edges within a graph')


def checked_weight(weight: Tensor, num_edges: int) -> Tensor:
    r"""Returns weights as floating point numbers. Raises a :class:`ValueError` unless they are finite, one for each edge."""
    if not isinstance(weight, Tensor):
        raise ArgumentError('edge_weight', described(weight), 'a tensor')
    weight = weight.to(torch.get_default_dtype()) if weight.dtype in _WHOLE else weight
    check_weight(weight, num_edges, wait=False)
    return weight


def check_weight(weight: Tensor, num_edges: int, wait: bool = True) -> None:
    r"""Raises a :class:`ValueError` unless weights are finite floating point numbers, one for each edge. A device other than
    the CPU is waited for, or asserts by itself that they are finite, as layers want it in each step.
    """
    by_head = weight.dim() == 2 and weight.size(0) == num_edges and weight.size(1) > 1
    if (weight.shape != (num_edges,) and not by_head) or not weight.is_floating_point():
        accepted = 'floating point and whole numbers of shape [E], and of [E, heads] for several heads'
        got = f'{described(weight)} for {num_edges} edges'
        raise ArgumentError('edge_weight', got, accepted, _remedy_of_weights(weight, num_edges))
    finite = weight.isfinite().all()
    if not (finite if wait else assert_on_device(finite, 'edge_weight: got numbers that are not finite')):
        place = (~weight.isfinite()).nonzero()[0].tolist()
        raise ArgumentError('edge_weight', f'{float(weight[tuple(place)])} at edge {place[0]}', 'finite numbers')


def _remedy_of_edges(edge_index: object) -> str:
    r"""Returns what makes edges of something that PyG users take for them."""
    if isinstance(edge_index, list | tuple | np.ndarray):
        return f'use torch.{"from_numpy" if isinstance(edge_index, np.ndarray) else "tensor"}(edge_index)'
    if not isinstance(edge_index, Tensor) or edge_index.dim() != 2:
        return ''
    rows, columns = edge_index.shape
    if rows == columns != 2:
        return 'of a matrix, use torch_geometric.utils.dense_to_sparse(matrix)[0]'
    turned = '.t()' if columns == 2 != rows else ''
    whole = '' if edge_index.dtype in INTEGERS else '.long()'
    return f'use edge_index{turned}{whole}' if turned or whole else ''


def _remedy_of_weights(weight: Tensor, num_edges: int) -> str:
    flat = '.view(-1)' if weight.shape == (num_edges, 1) else ''
    numbers = '.float()' if weight.dtype == torch.bool else ''
    return f'use edge_weight{flat}{numbers}' if flat or numbers else ''


def _check_is_no_batch(weight: Tensor, num_nodes: int) -> None:
    # Attention layers take edge_weight at the position of batch in GPS layers.
    if weight.shape == (num_nodes,) and num_nodes > 1 and int(weight[0]) == 0 and bool((weight.long().diff() >= 0).all()):
        raise ArgumentError(
            'edge_weight',
            f'whole numbers that ascend from 0, one for each of the {num_nodes} nodes, as in a batch vector',
            'weights of shape [E]',
            'give the batch vector as batch=batch, and such weights as edge_weight.float()',
        )


def edge_weights_of(data: Data) -> tuple[str, Any]:
    r"""Returns the name and the value of the edge weights: :obj:`edge_weight`; or else :obj:`weight`, the name of NetworkX; or
    else :obj:`edge_attr` of one floating point number for each edge, with a warning. The value is :obj:`None` without weights.
    """
    name = name_of_weights(data)
    if name == 'weight' and data.num_edges == data.num_nodes:
        warn(
            f'data: got weight of {data.num_edges} numbers for as many edges as nodes, which are used as edge weights. '
            'Name weights of edges edge_weight, and weights of nodes node_weight.'
        )
    if name == 'edge_attr':
        warn(
            'data: got edge_attr of one number for each edge, which is used as edge weights. Name weights edge_weight, '
            'and give features of edges the shape [E, 1].'
        )
    return name, attribute_of(data, name)


def name_of_weights(data: Data) -> str:
    r"""Returns the name of the attribute that has the edge weights, :obj:`"edge_weight"` if there are none."""
    if attribute_of(data, 'edge_index') is not None and attribute_of(data, 'edge_weight') is None:
        if _is_of_edges(data, 'weight'):
            return 'weight'
        if _is_of_edges(data, 'edge_attr') and data['edge_attr'].is_floating_point():
            return 'edge_attr'
    return 'edge_weight'


def attribute_of(data: Data, name: str) -> Any:
    r"""Returns an attribute, or :obj:`None` if the data lacks it."""
    return data.stores[0].get(name)  # data lists all its attributes to find one


def _is_of_edges(data: Data, name: str) -> bool:
    value = attribute_of(data, name)
    numbers = isinstance(value, Tensor) and (value.is_floating_point() or value.dtype in INTEGERS)
    return numbers and value.shape == (data.num_edges,)
