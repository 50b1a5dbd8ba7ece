r"""The division of the nodes of a batch into graphs."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pyg_topomask.errors import ArgumentError
from pyg_topomask.utils.checks import is_whole
from pyg_topomask.utils.functorch import int_or_symint, is_exporting, is_transforming, kept, outside_transforms

__all__ = ['Segments']


@dataclass(frozen=True)
class SegmentGroup:
    r"""Graphs of similar size, padded to :math:`n` nodes each, by the node in each slot, :obj:`[G, n]`. Padding repeats the
    last node of the same graph in :obj:`source`, so that graphs stay separate, and is the number of nodes of the batch in
    :obj:`target`.
    """

    source: Tensor
    target: Tensor
    num_nodes: int

    def __getitem__(self, place: slice | tuple[slice, slice]) -> SegmentGroup:
        r"""Returns some of the graphs, or some slots of them."""
        return SegmentGroup(self.source[place], self.target[place], self.num_nodes)

    @property
    def width(self) -> int:
        r"""The number of slots :math:`n` of each graph."""
        return self.source.size(1)

    @property
    def padding(self) -> Tensor:
        r"""Whether a slot is padding, :obj:`[G, n]`."""
        return self.target == self.num_nodes

    def take(self, x: Tensor) -> Tensor:
        r"""Returns :obj:`[H, G, n, c]` for :obj:`x` of shape :obj:`[N, H, c]`."""
        rows = x.flatten(0, 1).index_select(0, _of_heads(self.source, x))
        return rows.view(x.size(1), -1, self.width, x.size(2))

    def put(self, x: Tensor, rows: Tensor) -> None:
        r"""Writes :obj:`[H, G, n, c]` to :obj:`x`, :obj:`[N + 1, H, c or more]`, whose last row takes the padding."""
        x.flatten(0, 1)[:, : rows.size(-1)].index_copy_(0, _of_heads(self.target, x), rows.flatten(0, 2))


def _of_heads(node: Tensor, x: Tensor) -> Tensor:
    return (node.flatten() * x.size(1) + torch.arange(x.size(1), device=node.device).unsqueeze(1)).flatten()


class Segments:
    r"""The division of :math:`N` nodes into the graphs of a batch. Derived properties are computed once, on demand.

    Args:
        num_nodes (int): The number of nodes :math:`N`.
        batch (torch.Tensor, optional): The graph of each node, ascending, :obj:`[N]`. (default: :obj:`None`, one graph)
        num_graphs (int, optional): The number of graphs :math:`B`, required if the last graphs are empty.
            (default: :obj:`None`, inferred from :obj:`batch`)
        device (torch.device, optional): The device of the nodes. (default: the device of :obj:`batch`, or else the CPU)

    Example:
        >>> segments = Segments(3, torch.tensor([0, 0, 1]))
        >>> segments.ptr, segments.largest
        (tensor([0, 2, 3]), 2)
    """

    #: Whether this process has all nodes.
    is_whole = True

    def __init__(
        self,
        num_nodes: int,
        batch: Tensor | None = None,
        num_graphs: int | None = None,
        device: torch.device | None = None,
    ) -> None:
        self.num_nodes = num_nodes
        self.batch = batch
        if num_graphs is None:
            num_graphs = 1 if batch is None else _num_graphs(batch)
        if isinstance(num_graphs, torch.SymInt):
            torch._check(num_graphs >= 0)
        self.num_graphs = num_graphs
        self.device = device if batch is None else batch.device
        # Not functools.cached_property, whose lock in Python 3.11 causes graph breaks in torch.compile.
        self._derived: dict[Hashable, Any] = {}

    @classmethod
    @outside_transforms
    def checked(cls, num_nodes: int, batch: Tensor | None, num_graphs: int | None, device: torch.device) -> Segments:
        r"""Creates segments, unless the number of graphs does not fit the batch vector."""
        segments = cls(num_nodes, batch, device=device)
        least = segments.num_graphs
        if num_graphs is None or num_graphs is least:
            return segments
        if batch is None and num_graphs != 1:
            raise ArgumentError('num_graphs', f'{num_graphs!r} without batch', '1')
        if not is_whole(num_graphs, least):
            given = f'{num_graphs!r}, but batch names graph {least - 1}'
            raise ArgumentError('num_graphs', given, f'whole numbers from {least}')
        return cls(num_nodes, batch, int(num_graphs), device)

    @classmethod
    def from_ptr(cls, ptr: Tensor, num_nodes: int) -> Segments:
        r"""Creates segments from the first node of each graph and :math:`N`, :obj:`[B + 1]`."""
        graphs = torch.arange(ptr.numel() - 1, device=ptr.device)
        return cls(num_nodes, graphs.repeat_interleave(ptr.diff(), output_size=num_nodes), ptr.numel() - 1)

    @property
    def index(self) -> Tensor:
        r"""The graph of each node, in int64, :obj:`[N]`."""
        return kept(self._derived, 'index', self._make_index)

    def _make_index(self) -> Tensor:
        zeros = torch.zeros(self.num_nodes, dtype=torch.long, device=self.device)
        return zeros if self.batch is None else self.batch.long()

    @property
    def ptr(self) -> Tensor:
        r"""The first node of each graph, and :math:`N`, :obj:`[B + 1]`."""
        return kept(self._derived, 'ptr', self._make_ptr)

    @property
    def ptr_of_host(self) -> Tensor:
        r"""The same on the CPU."""
        return kept(self._derived, 'ptr of host', self.ptr.cpu)

    def _make_ptr(self) -> Tensor:
        bounds = torch.arange(self.num_graphs + 1, device=self.device)
        return bounds * self.num_nodes if self.batch is None else torch.searchsorted(self.index, bounds)

    @property
    def sizes(self) -> Tensor:
        r"""The number of nodes of each graph, :obj:`[B]`."""
        return self.ptr.diff()

    @property
    def first(self) -> Tensor:
        r"""The first node of each node's graph, :obj:`[N]`."""
        return self.ptr[:-1][self.index]

    @property
    def position(self) -> Tensor:
        r"""The position of each node within its graph, :obj:`[N]`."""
        return torch.arange(self.num_nodes, device=self.device) - self.first

    @property
    def several(self) -> bool:
        r"""Whether there are several graphs. In an exported program, there may be."""
        return True if isinstance(self.num_graphs, torch.SymInt) else self.num_graphs > 1

    @property
    def largest(self) -> int:
        r"""The number of nodes of the largest graph."""
        return kept(self._derived, 'extent', self._measured)[0]

    @property
    def num_pairs(self) -> int:
        r"""The number of pairs of nodes of the same graph."""
        return kept(self._derived, 'extent', self._measured)[1]

    def _measured(self) -> tuple[int, int]:
        if not self.several or isinstance(self.num_graphs, torch.SymInt):  # then an upper bound
            return self.num_nodes, self.num_nodes**2
        # One synchronization with a GPU.
        sizes = self.sizes
        largest, num_pairs = torch.stack([sizes.max(), sizes.square().sum()]).tolist()
        return largest, num_pairs

    def group_tensors(self, most: int | None = None) -> tuple[Tensor, ...]:
        r"""Returns source and target of each :class:`SegmentGroup`, interleaved, as arguments of custom operators. A group has
        at most :obj:`most` graphs. Widths are 4, 6, 8, 12, 16, 24 and so on, so that at most half of a graph is padding.
        """
        return kept(self._derived, ('groups', most), lambda: self._group(most))

    def _group(self, most: int | None) -> tuple[Tensor, ...]:
        ptr = self.ptr_of_host.numpy()  # NumPy's calls take less time than those of torch
        size = np.diff(ptr)
        power = 2 ** np.frexp(np.maximum(size, 4) - 1.0)[1].astype(np.int64)
        width = np.minimum(np.where(4 * size <= 3 * power, 3 * power // 4, power), max(self.largest, 1))
        tensors: list[Tensor] = []
        for slots in np.unique(width[size > 0]).tolist():
            graphs = np.flatnonzero((width == slots) & (size > 0))
            for begin in range(0, len(graphs), most or self.num_graphs):
                some = graphs[begin : begin + (most or self.num_graphs)]
                slot, counts = np.arange(slots), size[some, None]
                source = ptr[some, None] + np.minimum(slot, counts - 1)
                target = np.where(slot >= counts, self.num_nodes, source)
                tensors += [torch.from_numpy(nodes).to(self.device) for nodes in (source, target)]
        return tuple(tensors)

    def constants(self, most: int | None = None) -> list[Tensor]:
        r"""Returns arguments of a custom operator: :attr:`ptr` and :meth:`group_tensors`. Under torch.compile, only
        :attr:`ptr`, and the operator groups the graphs itself, because their sizes are unknown while tracing.
        """
        return [self.ptr] if torch.compiler.is_compiling() else [self.ptr, *self.group_tensors(most)]

    def maximum(self, x: Tensor) -> Tensor:
        r"""Returns the largest entry of each graph and head, at each of its nodes, for :obj:`x` of shape :obj:`[N, H]`."""
        if self.batch is None:
            # An exported program may be given no node.
            nodes = torch.cat([x, x.new_full((1, x.size(1)), -torch.inf)]) if is_exporting() else x
            return nodes.amax(0, keepdim=True).expand_as(x)
        largest = x.new_full((self.num_graphs, x.size(1)), -torch.inf)
        return largest.scatter_reduce(0, self.index.unsqueeze(1).expand_as(x), x, 'amax').index_select(0, self.index)

    def total(self, x: Tensor) -> Tensor:
        r"""Returns the sum over the processes that share the nodes of one graph, without a gradient. Here, there is one."""
        return x

    def pairs(self, row: Tensor, col: Tensor) -> Tensor:
        r"""Returns the places of pairs of nodes of the same graph among all such pairs by row."""
        start = self.sizes[self.index].cumsum(0) - self.sizes[self.index] - self.first
        return start.index_select(0, row) + col

    def repeated(self, times: int) -> Segments:
        r"""Returns the division of several copies of the nodes, those of the first copy first."""
        graph = self.index + self.num_graphs * torch.arange(times, device=self.index.device).unsqueeze(1)
        return Segments(times * self.num_nodes, graph.flatten(), times * self.num_graphs)

    def equal(self, other: Segments) -> bool:
        r"""Whether two divisions are the same."""
        if self is other:
            return True
        if self.num_nodes != other.num_nodes or self.num_graphs != other.num_graphs:
            return False
        return self.batch is other.batch or torch.equal(self.index, other.index)

    def __repr__(self) -> str:
        return f'{type(self).__name__}(num_nodes={self.num_nodes}, num_graphs={self.num_graphs})'


def groups_of_constants(constants: Sequence[Tensor], num_nodes: int, most: int | None = None) -> list[SegmentGroup]:
    r"""Returns the groups that :meth:`Segments.constants` describes."""
    ptr, *tensors = constants
    if not tensors:
        tensors = list(Segments.from_ptr(ptr, num_nodes).group_tensors(most))
    return [SegmentGroup(source, target, num_nodes) for source, target in zip(tensors[::2], tensors[1::2], strict=True)]


def products_by_graph(x: Tensor, segments: Segments) -> Tensor:
    r"""Returns :math:`\sum_i \mathbf{x}_i \mathbf{x}_i^{\top}` over the nodes of each graph in float64, without a gradient,
    :obj:`[B, H, c, c]`, for :obj:`x` of shape :obj:`[N, H, c]`. On one graph, :obj:`x` may have other rows than the nodes.
    """
    x = x.detach()
    if segments.batch is None:
        x = x.double()
        return segments.total(torch.einsum('nhc,nhd->hcd', x, x)).unsqueeze(0)
    sums = x.new_zeros(segments.num_graphs, x.size(1), x.size(2), x.size(2), dtype=torch.float64)
    if torch.compiler.is_compiling() or is_transforming():
        return sums.index_add(0, segments.index, (x.unsqueeze(-1) * x.unsqueeze(-2)).double())
    for group, graphs in _groups_and_graphs(segments):
        rows = group.take(x).masked_fill(group.padding.unsqueeze(-1), 0.0)
        sums.index_copy_(0, graphs, (rows.mT @ rows).transpose(0, 1).double())
    return sums


def multiply_by_graph(x: Tensor, matrices: Tensor, segments: Segments) -> Tensor:
    r"""Returns :math:`\mathbf{S}_g^{\top} \mathbf{x}_i` with the matrix of the graph of each node, :obj:`[N, H, d]`, for
    :obj:`x` of shape :obj:`[N, H, c]` and matrices of shape :obj:`[B, H, c, d]`. On one graph, :obj:`x` may have other rows
    than the nodes.
    """
    if segments.batch is None:
        return torch.einsum('nhc,hcd->nhd', x, matrices[0])
    out = x.new_zeros(x.size(0) + 1, x.size(1), matrices.size(-1))
    if torch.compiler.is_compiling() or is_transforming():
        out = out[:-1]
        for column in range(x.size(2)):  # all rows of the matrices at once would take c times the memory
            out = out + x[..., column, None] * matrices[:, :, column].index_select(0, segments.index)
        return out
    for group, graphs in _groups_and_graphs(segments):
        group.put(out, group.take(x) @ matrices.index_select(0, graphs).transpose(0, 1))
    return out[:-1]


def _groups_and_graphs(segments: Segments) -> Iterator[tuple[SegmentGroup, Tensor]]:
    r"""Yields groups of graphs, and the numbers of their graphs."""
    for group in groups_of_constants(segments.constants(), segments.num_nodes):
        yield group, segments.index.index_select(0, group.source[:, 0])


def next_power_of_two(size: Tensor) -> Tensor:
    r"""Returns the smallest power of two that is at least each size from 1 to :obj:`2**53`, exactly.

    Example:
        >>> next_power_of_two(torch.tensor([1, 2, 3, 2**30 + 1]))
        tensor([         1,          2,          4, 2147483648])
    """
    return 2 ** torch.frexp((size - 1).double()).exponent.long()


def by_width(size: Tensor) -> Iterator[tuple[int, Tensor]]:
    r"""Yields powers of two in ascending order, and the positions of the sizes from 1 that round up to each of them. With such
    padding, at most half of a graph is padding.

    Example:
        >>> list(by_width(torch.tensor([3, 1, 4])))
        [(1, tensor([1])), (4, tensor([0, 2]))]
    """
    widths = next_power_of_two(size)
    for width in widths.unique().tolist():
        yield width, (widths == width).nonzero().squeeze(1)


def _num_graphs(batch: Tensor) -> int:
    if is_exporting():  # for no node as well
        return int_or_symint(torch.cat([batch.new_full((1,), -1), batch])[-1]) + 1
    return int_or_symint(batch[-1]) + 1 if batch.numel() > 0 else 0
