r"""Sparse masks, by their entries."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import singledispatch

from torch import Tensor

from pyg_topomask.errors import ArgumentError
from pyg_topomask.graphs.graph import Graph
from pyg_topomask.graphs.segments import Segments
from pyg_topomask.graphs.sparse_pattern import SparsePattern
from pyg_topomask.operators.base import MaskOperator, common_heads
from pyg_topomask.operators.composed import Alternatives
from pyg_topomask.operators.forms import Entries, PreparedBlocks, SparseEntries
from pyg_topomask.operators.sparse_matmul import spmm
from pyg_topomask.utils.checks import check_shape
from pyg_topomask.utils.functorch import is_exporting

__all__ = ['Sparse']


#: The supported products of masks, for errors.
ENTRYWISE_PRODUCTS = (
    'products with a mask of low rank, such as SinDegreeMask, of two sparse masks, such as AdjacencyMask and GRFMask, or '
    'with a number, for all heads or each'
)


@dataclass(eq=False, repr=False)
class Sparse(MaskOperator):
    r"""A sparse matrix.

    Args:
        value (torch.Tensor): The values of the entries, :obj:`[H or 1, nnz]`.
        pattern (SparsePattern): Their positions.
        transposed (bool): Multiply by the transpose. (default: :obj:`False`)
    """

    value: Tensor
    pattern: SparsePattern
    transposed: bool = False

    def apply(self, x: Tensor) -> Tensor:
        return spmm(self.pattern, self.value.to(x.dtype), x, self.transposed)

    @property
    def T(self) -> Sparse:
        return replace(self, transposed=not self.transposed)

    @property
    def entries(self) -> SparseEntries | None:
        entries = SparseEntries(lambda: Entries(self.pattern, self.value), self.pattern.nnz)
        return entries.transposed() if self.transposed else entries


@singledispatch
def formed_sparse(entries: SparseEntries) -> MaskOperator:
    r"""Returns the operator of given entries."""
    formed = entries()
    return Sparse(formed.value, formed.pattern, heads=formed.value.size(0))


def sparse_operator(graph: Graph, pattern: SparsePattern, value: Tensor, heads: int | None = None) -> MaskOperator:
    r"""Binds a sparse mask given by its entries, which must not connect different graphs of the batch. A product costs
    :math:`O(nnz)`.

    Args:
        graph (Graph): The graphs.
        pattern (SparsePattern): The positions of the entries, see :meth:`SparsePattern.from_sorted`.
        value (torch.Tensor): Their values, :obj:`[heads, nnz]`, or :obj:`[1, nnz]` for all heads. Gradients flow to them.
        heads (int, optional): The number of heads. (default: :obj:`None`, as many as :obj:`value` has)

    Raises:
        ValueError: If the pattern has another size than the graphs, or the values do not fit it.

    Example:
        >>> import torch
        >>> graph = Graph.from_tensors(torch.tensor([[0], [1]]), num_nodes=2)
        >>> pattern = SparsePattern.from_sorted(*graph.edge_index, graph.num_nodes, graph.num_nodes)
        >>> sparse_operator(graph, pattern, value=torch.tensor([[3.0]])).to_dense()
        tensor([[[0., 3.],
                 [0., 0.]]])
    """
    size = pattern.num_rows, pattern.num_cols
    if not is_exporting() and size != (graph.num_nodes, graph.num_nodes):
        accepted = f'{graph.num_nodes} rows and columns, one for each node'
        raise ArgumentError('pattern', f'{size[0]} rows and {size[1]} columns', accepted)
    check_shape(('heads', pattern.nnz), value=value)
    if not value.is_floating_point():
        raise ArgumentError('value', value.dtype, 'floating point numbers')
    heads = value.size(0) if heads is None else heads
    return Sparse(value, pattern, segments=graph.segments, heads=heads, cost=pattern.nnz)


def sparse_product(left: MaskOperator, right: MaskOperator) -> MaskOperator:
    r"""Returns the entrywise product of two sparse masks bound to the same graphs, over their common entries."""
    first, second = left.entries, right.entries
    if first is None or second is None:
        raise ArgumentError(
            'mask',
            f'the entrywise product of {left!r} and {right!r}',
            ENTRYWISE_PRODUCTS,
            'power series are not sparse if edge weights require gradients, nor on shards',
        )
    return lazy_sparse(left.segments, common_heads((left, right)), first.intersection(second))


def lazy_sparse(segments: Segments, heads: int, entries: SparseEntries, blocks: PreparedBlocks | None = None) -> MaskOperator:
    r"""Returns a sparse mask whose entries are formed when they are called for, and which may also have prepared blocks."""
    cost = segments.num_nodes if entries.max_nnz is None else entries.max_nnz
    return Alternatives(lambda: formed_sparse(entries), entries, blocks, segments=segments, heads=heads, cost=cost)
