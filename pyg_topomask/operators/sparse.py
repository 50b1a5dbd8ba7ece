r"""Masks given by their entries."""

from __future__ import annotations

from torch import Tensor

from pyg_topomask.errors import ArgumentError
from pyg_topomask.graphs.graph import Graph
from pyg_topomask.graphs.sparse_pattern import SparsePattern
from pyg_topomask.operators.base import MaskOperator
from pyg_topomask.operators.capabilities import Entries, Product, SparseEntries
from pyg_topomask.operators.sparse_matmul import SparseStructure
from pyg_topomask.utils.checks import check_shape
from pyg_topomask.utils.functorch import is_exporting

#: The supported products of masks, for errors.
ENTRYWISE_PRODUCTS = (
    'products with a mask of low rank, such as SinDegreeMask, of two sparse masks, such as AdjacencyMask and GRFMask, or '
    'with a number, for all heads or each'
)


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
    product = Product(SparseStructure(), (value, *pattern.tensors), cost=pattern.nnz)
    entries = SparseEntries(lambda: Entries(pattern, value), pattern.nnz)
    return MaskOperator(graph.segments, value.size(0) if heads is None else heads, product, entries=entries)


def sparse_product(left: MaskOperator, right: MaskOperator) -> MaskOperator:
    r"""Returns the entrywise product of two sparse masks bound to the same graphs, over their common entries.

    Args:
        left (MaskOperator): The first mask.
        right (MaskOperator): The second mask.

    Raises:
        ValueError: If one of them has no entries.
    """
    if left.entries is None or right.entries is None:
        raise ArgumentError(
            'mask',
            f'the entrywise product of {left!r} and {right!r}',
            ENTRYWISE_PRODUCTS,
            'power series are not sparse if edge weights require gradients, nor on shards',
        )
    entries = left.entries.intersection(right.entries)

    def tensors() -> tuple[Tensor, ...]:
        formed = entries()
        return formed.value, *formed.pattern.tensors

    cost = left.segments.num_nodes if entries.max_nnz is None else entries.max_nnz
    product = Product(entries.structure(SparseStructure()), tensors, cost=cost)
    return MaskOperator(left.segments, max(left.heads, right.heads), product, entries=entries)
