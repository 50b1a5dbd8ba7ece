r"""The bias of edges with features in attention over pairs of nodes."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import Linear, Module

from pyg_topomask.errors import ArgumentError
from pyg_topomask.graphs.graph import Graph
from pyg_topomask.graphs.sparse_pattern import SparsePattern
from pyg_topomask.nn.edge_weights import check_edge_features
from pyg_topomask.nn.inputs import input_of
from pyg_topomask.operators.entries import Entries
from pyg_topomask.utils.checks import check_size
from pyg_topomask.utils.functorch import outside_transforms, readable, unwrapped

# Biases of at most this size have exponentials that stay far from the ends of float32, in products with entries of a mask.
_LARGEST = 40.0


class EdgeBias(Module):
    r"""Adds a learned bias to the logits of pairs of nodes that are edges, :math:`b_{ij} = \mathbf{w}^{\top} \mathbf{e}_{ij} +
    c` in each head, 0 at first. The bias of several edges of a pair is :math:`\log \operatorname{mean} \exp b`. Time and memory
    are linear in the numbers of edges and of pairs.

    Args:
        edge_dim (int): Size of the edge features.
        heads (int): The number of heads.
    """

    def __init__(self, edge_dim: int, heads: int) -> None:
        super().__init__()
        check_size(edge_dim=edge_dim)
        self.lin = Linear(edge_dim, heads)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        for parameter in self.lin.parameters():
            torch.nn.init.zeros_(parameter)

    def forward(self, edge_attr: Tensor, graph: Graph, flow: str) -> PairFactors:
        check_edge_features(edge_attr, graph.num_edges, *input_of(self.lin))
        bias = self.lin(edge_attr)
        bias = bias.to(torch.promote_types(bias.dtype, torch.float32))  # autocast would round its exponential
        small = readable(bias) and bool((bias.abs() <= _LARGEST).all())
        if not small and readable(bias) and not bool(bias.isfinite().all()):
            edge = int((~bias.isfinite()).any(1).nonzero()[0])
            raise ArgumentError(
                'edge_attr', f'features of edge {edge} with the biases {bias[edge].tolist()}', 'finite features'
            )
        edges = graph if graph.unweighted is None else graph.unweighted
        pairs = edges.cached(('pairs of edges', flow), lambda: _Pairs.of(graph, flow))
        highest = bias.new_zeros(pairs.key.numel(), bias.size(1))
        if not small:
            place = pairs.slot.unsqueeze(1).expand_as(bias)
            highest = highest.scatter_reduce(0, place, bias.detach(), 'amax', include_self=False)
            bias = bias - highest.index_select(0, pairs.slot)
        mean = torch.zeros_like(highest).index_add(0, pairs.slot, bias.exp()) / pairs.size
        return PairFactors(pairs, mean.t(), None if small else highest.t())


class _Pairs(NamedTuple):
    r"""The distinct pairs :math:`(i, j)` of nodes that are edges.

    Args:
        key (torch.Tensor): The numbers :math:`iN + j` of the pairs, ascending, :obj:`[P]`.
        slot (torch.Tensor): The pair of each edge, :obj:`[E]`.
        size (torch.Tensor): The number of edges of each pair, :obj:`[P, 1]`.
        found (list): The pattern in which the pairs were found last, and where.
    """

    key: Tensor
    slot: Tensor
    size: Tensor
    found: list[tuple[SparsePattern, tuple[Tensor, Tensor]]]

    @classmethod
    @outside_transforms
    def of(cls, graph: Graph, flow: str) -> _Pairs:
        size = graph.num_nodes
        pattern, slot = SparsePattern.from_pairs(*graph.row_and_col(flow), size, size)
        return cls(_keys(pattern), slot.long(), slot.long().bincount(minlength=pattern.nnz).unsqueeze(1), [])

    @outside_transforms
    def places(self, pattern: SparsePattern) -> tuple[Tensor, Tensor]:
        r"""Returns which pairs are entries of a pattern with ascending columns, and which entries these are."""
        if not self.found or self.found[0][0] is not pattern:
            with torch.inference_mode(False):  # for training later
                self.found[:] = [(pattern, _found(_keys(pattern), self.key))]
        return self.found[0][1]

    @outside_transforms
    def places_by_head(self, pattern: SparsePattern, heads: int) -> tuple[Tensor, Tensor]:
        r"""Returns which pairs of all heads, with the number :math:`hP + p`, are entries of a pattern, and which entries these
        are. Head :math:`h` of node :math:`i` is row and column :math:`iH + h`.
        """
        row, col = unwrapped(pattern.row).long(), unwrapped(pattern.col).long()
        node = torch.div(row, heads, rounding_mode='floor')
        other = torch.div(col, heads, rounding_mode='floor')
        entry, pair = _found(self.key, node * (pattern.num_rows // heads) + other)
        return (row - node * heads)[entry] * self.key.numel() + pair, entry


def _found(keys: Tensor, wanted: Tensor) -> tuple[Tensor, Tensor]:
    r"""Returns which of the wanted keys are among the ascending ones, and where."""
    place = torch.searchsorted(keys, wanted)
    found = (torch.nn.functional.pad(keys, (0, 1), value=-1)[place] == wanted).nonzero().squeeze(1)
    return found, place[found]


def _keys(pattern: SparsePattern) -> Tensor:
    r"""Returns the number of each entry, row by row."""
    return pattern.row.long() * pattern.num_cols + pattern.col


class PairFactors(NamedTuple):
    r"""Factors of the entries of a mask at the pairs of nodes that are edges, :obj:`[H, P]`, and logarithms to add to them, or
    :obj:`None` for zeros.
    """

    pairs: _Pairs
    factor: Tensor
    logarithm: Tensor | None

    def times(self, entries: Entries) -> Entries:
        r"""Returns the product with the entries of a mask."""
        return _times(entries, self.factor, self.logarithm, *self.pairs.places(entries.pattern))

    def times_by_head(self, entries: Entries) -> Entries:
        r"""Returns the product with entries of which each head has its own rows and columns, as those of k-MIP attention."""
        if unwrapped(entries.pattern.col).dim() > 1:
            raise ArgumentError('x', 'a batch of torch.func.vmap', 'one without edge_dim')
        places = self.pairs.places_by_head(entries.pattern, self.factor.size(0))
        logarithm = None if self.logarithm is None else self.logarithm.reshape(1, -1)
        return _times(entries, self.factor.reshape(1, -1), logarithm, *places)


def _times(entries: Entries, factor: Tensor, logarithm: Tensor | None, pair: Tensor, entry: Tensor) -> Entries:
    value = entries.value.to(torch.promote_types(entries.value.dtype, factor.dtype)).expand(factor.size(0), -1)
    changed = value.index_select(1, entry) * factor.index_select(1, pair)
    value = value.index_copy(1, entry, changed.to(value.dtype))
    if logarithm is not None:  # the softmax of a row does not change with a factor of the row
        log = torch.zeros_like(value).index_copy(1, entry, logarithm.index_select(1, pair).to(value.dtype))
        row = entries.pattern.row.long().expand_as(log)
        highest = log.new_full((log.size(0), entries.pattern.num_rows), -math.inf)
        highest = highest.scatter_reduce(1, row, log.masked_fill(value.detach() == 0, -math.inf), 'amax')
        value = value * (log - highest.masked_fill(highest == -math.inf, 0.0).gather(1, row)).clamp(max=0.0).exp()
    return Entries(entries.pattern, value)
