r"""Masks given by their entries."""

from __future__ import annotations

from torch import Tensor

from pyg_topomask.graph import Graph
from pyg_topomask.operators import Entries, MaskOperator
from pyg_topomask.ops.sparse import SparseStructure, entries_of
from pyg_topomask.sparse_pattern import SparsePattern

__all__ = ['sparse_operator', 'sparse_product']


def sparse_operator(graph: Graph, pattern: SparsePattern, value: Tensor, heads: int | None = None) -> MaskOperator:
    r"""Binds a sparse mask given by its entries, none of them between two graphs of the batch. A product costs :math:`O(nnz)`.

    Args:
        graph (Graph): The graphs.
        pattern (SparsePattern): The positions of the entries, see :meth:`SparsePattern.from_sorted`.
        value (torch.Tensor): Their values, :obj:`[heads, nnz]`, or :obj:`[1, nnz]` for all heads. Gradients flow to them.
        heads (int, optional): The number of heads. (default: :obj:`None`, as many as :obj:`value` has)

    Example:
        >>> import torch
        >>> graph = Graph.from_tensors(torch.tensor([[0], [1]]), num_nodes=2)
        >>> pattern = SparsePattern.from_sorted(*graph.edge_index, graph.num_nodes, graph.num_nodes)
        >>> sparse_operator(graph, pattern, value=torch.tensor([[3.0]])).to_dense()
        tensor([[[0., 3.],
                 [0., 0.]]])
    """
    return MaskOperator(
        SparseStructure(),
        (value, *pattern.tensors),
        graph.num_nodes,
        value.size(0) if heads is None else heads,
        graph.batch,
        graph.num_graphs,
        cost=pattern.nnz,
        entries=lambda: Entries(pattern, value),
        num_entries=pattern.nnz,
    )


def sparse_product(left: MaskOperator, right: MaskOperator) -> MaskOperator:
    r"""Returns the entrywise product of two sparse masks bound to the same graphs: that of the entries that both have.

    Args:
        left (MaskOperator): The one.
        right (MaskOperator): The other.

    Raises:
        ValueError: If one of them has no entries.
    """
    for own, other in ((left, right), (right, left)):
        if own.entries is None:
            raise ValueError(
                f'mask: got the entrywise product of {other!r} and {own!r}; accepted are products with a mask of low rank, '
                f'as SinDegreeMask, of two sparse masks, as AdjacencyMask and GRFMask, or with a number, for all heads or each'
            )

    def entries() -> Entries:
        first, second = entries_of(left), entries_of(right)
        pattern, *places = first.pattern.intersection(second.pattern)
        one, other = (own.value.index_select(1, place) for own, place in zip((first, second), places, strict=True))
        return Entries(pattern, one * other)

    def tensors() -> tuple[Tensor, ...]:
        own = entries()
        return own.value, *own.pattern.tensors

    known = [own.num_entries for own in (left, right) if own.num_entries is not None]
    return MaskOperator(
        SparseStructure(),
        tensors,
        left.num_nodes,
        max(left.heads, right.heads),
        left.batch,
        left.num_graphs,
        cost=min(known, default=None),
        entries=entries,
        num_entries=min(known, default=None),
    )
