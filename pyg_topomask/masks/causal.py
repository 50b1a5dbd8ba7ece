r"""Causal masks: prefix sums that restart in every graph."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from pyg_topomask.errors import ArgumentError
from pyg_topomask.graphs.graph import Graph
from pyg_topomask.graphs.segments import Segments, by_width
from pyg_topomask.graphs.sparse_pattern import stable_argsort
from pyg_topomask.masks.base.mask import Mask
from pyg_topomask.operators.base import MaskOperator
from pyg_topomask.utils.checks import described
from pyg_topomask.utils.functorch import LoopedFunction

# Rows per block of a sum: a block stays in cache.
_BLOCK = 256


class _PrefixSum(LoopedFunction):
    r"""Prefix sums in the order of a layout. The gradient uses the layout of the reverse order."""

    @staticmethod
    def forward(x: Tensor, *layouts: Tensor) -> Tensor:
        slot, *tables = layouts[: len(layouts) // 2]
        flat = x.flatten(1)
        # The sum before the first node of a graph.
        sums = [flat.new_zeros(1, flat.size(1))]
        for table in tables:
            rows = flat.index_select(0, table.flatten()).view(*table.shape, flat.size(1))
            sums.append(_scan(rows).flatten(0, 1))
        return torch.cat(sums).index_select(0, slot).view(x.shape)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        ctx.save_for_backward(*inputs[1:])

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        layouts = ctx.saved_tensors
        return (_PrefixSum.apply(grads[0], *_reverse(layouts)), *[None] * len(layouts))


def _scan(x: Tensor) -> Tensor:
    r"""Cumulative sums along the second of three dimensions, block by block."""
    if x.size(1) <= _BLOCK:
        return x.cumsum(1)
    blocks: Tensor = torch.nn.functional.pad(x, (0, 0, 0, -x.size(1) % _BLOCK)).unflatten(1, (-1, _BLOCK)).cumsum(2)
    before = _scan(blocks[:, :-1, -1])
    blocks[:, 1:] += before.unsqueeze(2)
    return blocks.view(x.size(0), -1, x.size(2))[:, : x.size(1)]


def _reverse(layouts: Sequence[Tensor]) -> tuple[Tensor, ...]:
    half = len(layouts) // 2
    return (*layouts[half:], *layouts[:half])


@dataclass(eq=False, repr=False)
class PrefixSum(MaskOperator):
    r"""Prefix sums within each graph, given the layouts of the order and of the reverse order."""

    layouts: tuple[Tensor, ...]

    def apply(self, x: Tensor) -> Tensor:
        return _PrefixSum.apply(x, *self.layouts)

    @property
    def T(self) -> MaskOperator:
        return replace(self, layouts=_reverse(self.layouts))


def _layout(order: Tensor, value: Tensor, segments: Segments, strict: bool) -> tuple[Tensor, ...]:
    r"""Arranges graphs of similar sizes in common tables, so that sums stay within graphs without a loop over graphs. Nodes are
    sorted graph by graph, and equal values in a graph are ties, which :obj:`strict` sums exclude. Returns for each node the
    entry of the concatenated tables that holds its sum, counted from 1 with 0 for no sum, and tables of sorted nodes,
    :obj:`[graphs, size]`, which repeat the last node of small graphs.
    """
    size, first, position, device = segments.sizes, segments.ptr[:-1], segments.position, order.device
    start, tables, used = torch.zeros_like(size), [], 1
    filled = size.nonzero().squeeze(1)
    for _, places in by_width(size[filled]):
        graphs = filled[places]
        width = int(size[graphs].max())
        column = torch.arange(width, device=device).minimum(size[graphs].unsqueeze(1) - 1)
        tables.append(order[first[graphs].unsqueeze(1) + column])
        start[graphs] = used + width * torch.arange(graphs.numel(), device=device)
        used += tables[-1].numel()
    entry = start[segments.index] + position
    begins = position == 0
    begins[1:] |= value[1:] != value[:-1]
    # The sum before the first tie, or up to the last.
    read = (begins if strict else begins.roll(-1)).nonzero().squeeze(1)
    if strict:
        entry = (entry - 1).masked_fill(position == 0, 0)
    entry = entry[read][begins.cumsum(0) - 1]
    return torch.empty_like(entry).index_copy(0, order, entry), *tables


class CausalMask(Mask):
    r"""Attention to the nodes that are not later in an order, from `"From block-Toeplitz matrices to differential
    equations on graphs" <https://arxiv.org/abs/2107.07999>`_ (Sec. 3):

    .. math::
        M_{ij} = 1 \text{ if } o_j \le o_i \text{ in the same graph, else } 0

    where :math:`o_i` is the position of node :math:`i` in the order. Nodes with the same position attend to each other. With
    :obj:`strict=True`, the condition is :math:`o_j < o_i`. Products are prefix sums within each graph, in :math:`O(N)`, and
    products with the transpose :attr:`T` are suffix sums.

    The mask ignores edges.

    Args:
        heads (int): The number of heads. (default: :obj:`1`)
        order (str, optional): The name of a node attribute of the data, :obj:`[N]` or :obj:`[N, 1]`, that orders the nodes of
            each graph, such as a time stamp. :obj:`None` is the order in which the nodes are stored. (default: :obj:`None`)
        strict (bool): Attend only to earlier nodes. The first node of a graph then attends to no node, and its output is 0.
            (default: :obj:`False`)

    Raises:
        ValueError: If the attribute is missing, does not fit the nodes, or is not finite.

    Shapes:
        - **input:** graphs with :math:`|\mathcal{V}|` nodes, the attribute :obj:`order` :math:`(|\mathcal{V}|)` *(optional)*
        - **output:** a mask operator :math:`(H, |\mathcal{V}|, |\mathcal{V}|)`

    Example:
        >>> from torch_geometric.data import Data
        >>> CausalMask(order='time')(Data(time=torch.tensor([2.0, 1.0]), num_nodes=2)).to_dense()
        tensor([[[1., 1.],
                 [0., 1.]]])
    """

    form = 'product'
    direction = 'unused'

    def __init__(self, heads: int = 1, order: str | None = None, strict: bool = False) -> None:
        super().__init__(heads)
        if not isinstance(order, str | None):
            raise ArgumentError('order', repr(order), 'the name of an attribute of the data and None')
        self.order = order
        self.strict = strict

    def settings(self) -> Hashable:
        return type(self), self.order, self.strict

    def prepare(self, graph: Graph, generator: torch.Generator | None = None) -> tuple[Tensor, ...]:
        order = value = torch.arange(graph.num_nodes, device=graph.device)
        if self.order is not None:
            order, value = self._sorted(graph)
        # The reverse order within each graph.
        segments = graph.segments
        back = segments.ptr[1:][segments.index] - 1 - segments.position
        backwards = _layout(order[back], value[back], segments, self.strict)
        return *_layout(order, value, segments, self.strict), *backwards

    def _sorted(self, graph: Graph) -> tuple[Tensor, Tensor]:
        r"""Returns the nodes, graph by graph, in ascending order of the attribute, and the attribute in this order."""
        assert self.order is not None
        value = graph.attribute(self.order, 'order')
        if not isinstance(value, Tensor) or value.shape not in ((graph.num_nodes,), (graph.num_nodes, 1)) or value.is_complex():
            accepted = f'a tensor of shape [{graph.num_nodes}], one real number a node'
            raise ArgumentError('order', f'{self.order!r} with {described(value)}', accepted)
        value = value.detach().view(-1)
        if value.is_floating_point() and not bool(value.isfinite().all()):
            node = int((~value.isfinite()).nonzero()[0])
            raise ArgumentError('order', f'{self.order!r} with {float(value[node])} at node {node}', 'finite numbers')
        order = torch.argsort(value, stable=True)
        order = order[stable_argsort(graph.segments.index[order], graph.num_graphs)]
        return order, value[order]

    def bind(self, graph: Graph, state: tuple[Tensor, ...]) -> MaskOperator:
        return PrefixSum(state, segments=graph.segments, heads=self.heads, cost=graph.num_nodes)
