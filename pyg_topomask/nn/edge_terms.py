r"""What edges add to attention over pairs of nodes, from their features: a bias of the logit, and a term of the value."""

from __future__ import annotations

import math
from functools import singledispatch
from typing import NamedTuple, TypeAlias

import torch
from torch import Tensor
from torch.nn import Linear, Module

from pyg_topomask.errors import ArgumentError
from pyg_topomask.graphs.graph import Graph
from pyg_topomask.graphs.sparse_pattern import SparsePattern, matches
from pyg_topomask.nn.edge_weights import check_edge_features
from pyg_topomask.nn.inputs import input_of
from pyg_topomask.operators.base import MaskOperator
from pyg_topomask.operators.forms import Entries
from pyg_topomask.operators.sparse_matmul import spmm
from pyg_topomask.ops.softmax_attention import entries_of_pairs
from pyg_topomask.ops.softmax_entries import SoftmaxAttention, attend_pairs, attend_softmax
from pyg_topomask.utils.checks import check_size
from pyg_topomask.utils.functorch import outside_transforms, readable, unwrapped
from pyg_topomask.utils.precision import widened

# Biases of at most this size have exponentials that stay far from the ends of float32, in products with entries of a mask.
_LARGEST = 40.0


class EdgeTerms(Module):
    r"""What edges add to attention over pairs of nodes, from their features, in each head: a bias :math:`b = \mathbf{w}^{\top}
    \mathbf{e} + c` of the logit, and a vector :math:`\mathbf{u} = \mathbf{W} \mathbf{e} + \mathbf{c}` of the value, both 0 at
    first. Several edges :math:`e` of a pair have the bias :math:`\log \operatorname{mean}_e \exp b_e`, and the vector
    :math:`\sum_e \operatorname{softmax}_e(b_e) \, \mathbf{u}_e`. Time is linear in the numbers of edges and of pairs. Training
    stores :math:`O(E (D + H))` numbers.
    """

    def __init__(self, edge_dim: int, heads: int, val_dim: int) -> None:
        super().__init__()
        check_size(edge_dim=edge_dim)
        self.lin_bias = Linear(edge_dim, heads)
        self.lin_value = Linear(edge_dim, heads * val_dim)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        for parameter in self.parameters():
            torch.nn.init.zeros_(parameter)

    def forward(self, edge_attr: Tensor, graph: Graph, flow: str) -> TermsOfPairs:
        check_edge_features(edge_attr, graph.num_edges, *input_of(self.lin_bias))
        bias = self.lin_bias(edge_attr)
        bias = widened(bias)  # autocast would round its exponential
        small = readable(bias) and bool((bias.abs() <= _LARGEST).all())
        if not small and readable(bias) and not bool(bias.isfinite().all()):
            edge = int((~bias.isfinite()).any(1).nonzero()[0])
            given = f'features of edge {edge} with the biases {bias[edge].tolist()}'
            raise ArgumentError('edge_attr', given, 'finite features')
        edges = graph if graph.unweighted is None else graph.unweighted
        pairs = edges.cached(('pairs of edges', flow), lambda: _Pairs.of(graph, flow))
        highest = bias.new_zeros(pairs.key.numel(), bias.size(1))
        if not small:
            place = pairs.slot.unsqueeze(1).expand_as(bias)
            highest = highest.scatter_reduce(0, place, bias.detach(), 'amax', include_self=False)
            bias = bias - highest.index_select(0, pairs.slot)
        factor = bias.exp()
        total = torch.zeros_like(highest).index_add(0, pairs.slot, factor)
        share = factor / total.index_select(0, pairs.slot)
        return TermsOfPairs(pairs, (total / pairs.size).t(), None if small else highest.t(), share, edge_attr, self.lin_value)


#: Some pairs that are edges, and the entries of a mask at them.
Places: TypeAlias = tuple[Tensor, Tensor]


class _Pairs(NamedTuple):
    r"""The distinct pairs :math:`(i, j)` of nodes that are edges."""

    num_nodes: int
    key: Tensor  # the numbers iN + j of the pairs, ascending, [P]
    slot: Tensor  # the pair of each edge, [E]
    size: Tensor  # the number of edges of each pair, [P, 1]
    found: list[tuple[SparsePattern, Places]]  # the pattern in which the pairs were found last, and where
    incidence: list[SparsePattern]  # the matrix of :meth:`edges_of_nodes` for the number of heads that asked last

    @classmethod
    @outside_transforms
    def of(cls, graph: Graph, flow: str) -> _Pairs:
        size = graph.num_nodes
        pattern, slot = SparsePattern.from_pairs(*graph.row_and_col(flow), size, size)
        return cls(size, _keys(pattern), slot.long(), slot.long().bincount(minlength=pattern.nnz).unsqueeze(1), [], [])

    @outside_transforms
    def edges_of_nodes(self, heads: int) -> SparsePattern:
        r"""Returns the matrix with an entry in row :math:`iH + h` and column :math:`e` for each head :math:`h` and each edge
        :math:`e` of a pair :math:`(i, j)`.
        """
        pattern = self.incidence[0] if self.incidence else None
        if pattern is None or pattern.num_rows != self.num_nodes * heads:
            with torch.inference_mode(False):  # for training later
                node = torch.div(self.key, max(self.num_nodes, 1), rounding_mode='floor')[self.slot]
                row = node.unsqueeze(1) * heads + torch.arange(heads, device=node.device)
                col = torch.arange(node.numel(), device=node.device).unsqueeze(1).expand_as(row)
                pattern, _ = SparsePattern.from_pairs(row.flatten(), col.flatten(), self.num_nodes * heads, node.numel())
                self.incidence[:] = [pattern]
        return pattern

    @outside_transforms
    def places(self, pattern: SparsePattern) -> Places:
        r"""Returns which pairs are entries of a pattern with ascending columns, and which entries these are."""
        found = self.found[0] if self.found else None
        if found is None or found[0] is not pattern:
            with torch.inference_mode(False):  # for training later
                found = pattern, matches(_keys(pattern), self.key)
                self.found[:] = [found]
        return found[1]

    @outside_transforms
    def places_by_head(self, entries: Entries, heads: int) -> Places:
        r"""Returns the same for entries that each head has for itself, without those of 0. Head :math:`h` of node :math:`i`
        is row and column :math:`iH + h`, and the numbers of its pairs are :math:`hP + p`. Columns may be in any order.
        """
        row, col = unwrapped(entries.pattern.row).long(), unwrapped(entries.pattern.col).long()
        node = torch.div(row, heads, rounding_mode='floor')
        other = torch.div(col, heads, rounding_mode='floor')
        entry, pair = matches(self.key, node * self.num_nodes + other)
        present = unwrapped(entries.value)[0, entry] != 0  # empty slots of a search are entries of 0 at the node itself
        entry, pair = entry[present], pair[present]
        return (row - node * heads)[entry] * self.key.numel() + pair, entry


def _keys(pattern: SparsePattern) -> Tensor:
    r"""Returns the number of each entry, row by row."""
    return pattern.row.long() * pattern.num_cols + pattern.col


class TermsOfPairs(NamedTuple):
    r"""What edges add to attention over pairs of nodes, see :class:`EdgeTerms`."""

    pairs: _Pairs
    factor: Tensor  # of the entries of a mask at the pairs that are edges, [H, P]
    logarithm: Tensor | None  # to add to the logarithms of these factors, [H, P], or None for zeros
    share: Tensor  # of each edge in its pair, [E, H]
    edge_attr: Tensor
    lin_value: Linear

    def times(self, entries: Entries) -> tuple[Entries, Places]:
        r"""Returns the product with the entries of a mask, and where the pairs are among these."""
        places = self.pairs.places(entries.pattern)
        return _times(entries, self.factor, self.logarithm, *places), places

    def times_by_head(self, entries: Entries) -> tuple[Entries, Places]:
        r"""Returns the same for entries that each head has for itself, as those of k-MIP attention."""
        if unwrapped(entries.pattern.col).dim() > 1:
            raise ArgumentError('x', 'a batch of torch.func.vmap', 'one without edge_dim')
        places = self.pairs.places_by_head(entries, self.factor.size(0))
        logarithm = None if self.logarithm is None else self.logarithm.reshape(1, -1)
        return _times(entries, self.factor.reshape(1, -1), logarithm, *places), places

    def attend(self, q: Tensor, k: Tensor, v: Tensor, entries: Entries, dropout: float) -> SoftmaxAttention:
        r"""Computes :func:`~pyg_topomask.ops.softmax_entries.attend_softmax` with what edges add."""
        entries, places = self.times(entries)
        found = attend_softmax(q, k, v, entries, dropout)
        return found._replace(out=found.out + self._value(found.shown, places).to(v.dtype))

    def attend_by_head(self, q: Tensor, k: Tensor, v: Tensor, entries: Entries, dropout: float) -> SoftmaxAttention:
        r"""Computes :func:`~pyg_topomask.ops.softmax_entries.attend_pairs` with what edges add."""
        entries, places = self.times_by_head(entries)
        found = attend_pairs(q, k, v, entries, dropout)
        return found._replace(out=found.out + self._value(found.shown, places).to(v.dtype))

    def _value(self, alpha: Tensor, places: Places) -> Tensor:
        r"""Returns :math:`\sum_j \alpha_{ij} \mathbf{u}_{ij}`, :obj:`[N, H, d]`, given the coefficients at the entries,
        :obj:`[H, nnz]`, or :obj:`[1, nnz]` if each head has its own, and what :meth:`times` returns.
        """
        (heads, count), (pair, entry) = self.factor.shape, places
        of_pairs = alpha.new_zeros(alpha.size(0), heads * count // alpha.size(0))
        of_pairs = of_pairs.index_copy(1, pair, alpha.index_select(1, entry)).view(heads, count)
        of_edges = of_pairs.t().index_select(0, self.pairs.slot) * self.share
        # Sums of features come first, and then the weights of each head: there are fewer nodes than edges.
        features = torch.nn.functional.pad(self.edge_attr.to(of_edges.dtype), (0, 1), value=1.0).unsqueeze(1)
        pattern = self.pairs.edges_of_nodes(heads)
        weight = of_edges.new_zeros(pattern.nnz).index_copy(0, pattern.perm_t.long(), of_edges.flatten())
        summed = spmm(pattern, weight.unsqueeze(0), features).view(-1, heads, features.size(2))
        matrix, bias = self.lin_value.weight.unflatten(0, (heads, -1)), self.lin_value.bias.view(heads, -1)
        return torch.einsum('nhc,hdc->nhd', summed, torch.cat([matrix, bias.unsqueeze(2)], dim=2).to(summed.dtype))

    def values_at(self, pairs: Tensor) -> Tensor:
        r"""Returns the vectors :math:`\mathbf{u}` of pairs :math:`(i, j)`, :obj:`[nnz, H, d]`, which are 0 without an edge."""
        vector = self.lin_value(self.edge_attr).unflatten(1, (self.factor.size(0), -1)) * self.share.unsqueeze(2)
        of_pairs = vector.new_zeros(self.pairs.key.numel(), *vector.shape[1:]).index_add(0, self.pairs.slot, vector)
        wanted, place = matches(self.pairs.key, pairs[0] * self.pairs.num_nodes + pairs[1])
        return vector.new_zeros(pairs.size(1), *vector.shape[1:]).index_copy(0, wanted, of_pairs[place])


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


@singledispatch
def attention_with_edges_on(
    graph: Graph,
    edge_terms: EdgeTerms,
    flow: str,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: MaskOperator,
    dropout: float,
    edge_attr: Tensor,
) -> Tensor:
    r"""Softmax attention over the entries of a mask with what edges add. On a graph of several processes, it is another."""
    terms = edge_terms(edge_attr, graph, flow)
    return terms.attend(q, k, v, entries_of_pairs(mask, edge_dim=edge_attr.size(1)), dropout).out
