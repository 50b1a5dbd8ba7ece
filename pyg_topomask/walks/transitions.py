r"""The transitions of walkers: their targets, probabilities, and factors of the load."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch_geometric.utils import lexsort

from pyg_topomask.graphs.graph import Graph
from pyg_topomask.graphs.sparse_pattern import stable_argsort

TRANSITIONS = ('uniform', 'weight')


@dataclass(frozen=True)
class Transitions:
    r"""The transitions of walkers from node :math:`i` to node :math:`j` along the edges of row :math:`i` of :math:`\mathbf{W}`,
    with equal probabilities (:obj:`"uniform"`) or probabilities proportional to :math:`|W_{ij}|` (:obj:`"weight"`).

    Args:
        first (torch.Tensor): The first edge in the row of each node, and the number of edges, 0 if walks end, :obj:`[N, 2]`.
        edges (torch.Tensor): The column of each edge in row order, with the two numbers of :obj:`first` for this node and the
            bits of :attr:`factor`, so that a hop takes one lookup, :obj:`[E, 4]`.
        cumulative (torch.Tensor, optional): :math:`i + \sum_{j' \le j} p_{ij'}`, ascending over all edges, in float64,
            :obj:`[E]`, unless all probabilities of a row are equal.
    """

    first: Tensor
    edges: Tensor
    cumulative: Tensor | None

    @property
    def factor(self) -> Tensor:
        r"""The factor of the load for each edge, :math:`W_{ij} / p_{ij}`, :obj:`[E]`."""
        return as_factor(self.edges[:, 3])

    @classmethod
    def of(
        cls, graph: Graph, normalization: str | None, transition: str = 'uniform', flow: str = 'source_to_target'
    ) -> Transitions:
        r"""Returns the transitions of a graph, which stores them."""
        if graph.weight.requires_grad:  # the weights may have changed
            return cls._make(graph, normalization, transition, flow)
        key = (cls.__name__, normalization, transition, flow)
        return graph.cached(key, lambda: cls._make(graph, normalization, transition, flow))

    @classmethod
    @torch.no_grad()
    def _make(cls, graph: Graph, normalization: str | None, transition: str, flow: str) -> Transitions:
        order = order_of_edges(graph, flow)
        row, col = (end.index_select(0, order) for end in graph.row_and_col(flow))
        weight = graph.normalized_weight(normalization, flow).to(graph.weight_dtype).index_select(0, order)
        degree = torch.bincount(row, minlength=graph.num_nodes)
        start = degree.cumsum(0) - degree
        cumulative = None
        if transition == 'uniform':
            factor = weight * degree.to(weight.dtype).index_select(0, row)
        else:
            size = weight.double().abs()
            total = size.new_zeros(graph.num_nodes).index_add_(0, row, size)
            degree = degree.masked_fill(total == 0, 0)
            share = size / total.masked_fill(total == 0, 1.0)[row]
            running = share.cumsum(0)
            before = torch.cat([running.new_zeros(1), running])[start[row]]
            cumulative = row + (running - before)
            factor = weight.sign() * total[row].to(weight.dtype)
        small = max(graph.num_nodes, graph.num_edges) < 2**31
        first = torch.stack([start, degree], dim=1).to(torch.int32 if small else torch.int64)
        narrow = small and factor.dtype == torch.float32
        bits = factor.view(torch.int32) if narrow else factor.double().view(torch.int64)
        columns = col.unsqueeze(1), first.index_select(0, col), bits.unsqueeze(1)
        edges = torch.cat([column.to(bits.dtype) for column in columns], dim=1)
        return cls(first, edges, cumulative)

    def choose(self, position: Tensor, uniform: Tensor) -> Tensor:
        r"""Returns the edge of each walker, given one uniform number each, if the probabilities differ."""
        assert self.cumulative is not None
        edge = torch.searchsorted(self.cumulative, position + uniform, right=True)
        start, degree = self.first.index_select(0, position).unbind(1)
        return edge.clamp(start, start + degree - 1)  # numbers close to 1 may round up to the next node


def order_of_edges(graph: Graph, flow: str) -> Tensor:
    r"""Sorts edges by row and column, and parallel edges by weight, so that equal graphs get equal walks in any order of
    edges.
    """
    row, col = graph.row_and_col(flow)
    pair = row * graph.num_nodes + col
    return stable_argsort(pair) if graph.edge_weight is None else lexsort([graph.edge_weight, pair])


def as_factor(bits: Tensor) -> Tensor:
    r"""Reinterprets integers as floating point numbers of the same width."""
    return bits.view(torch.float32 if bits.dtype == torch.int32 else torch.float64)
