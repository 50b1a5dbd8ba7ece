r"""The adjacency matrix as a mask."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from pyg_topomask.graphs.edges import check_flow, check_normalization
from pyg_topomask.graphs.graph import Graph
from pyg_topomask.graphs.sparse_pattern import SparsePattern
from pyg_topomask.masks.base.mask import Mask
from pyg_topomask.operators.base import MaskOperator
from pyg_topomask.operators.sparse import sparse_operator
from pyg_topomask.utils.checks import check_finite


@dataclass(frozen=True)
class AdjacencyState:
    r"""The distinct edges, including self-loops, with the weights of added self-loops and of all other edges."""

    pattern: SparsePattern
    weight: Tensor
    loop: Tensor


class AdjacencyMask(Mask):
    r"""Attention along the edges and, with a learned weight :math:`s`, to the node itself:

    .. math::
        \mathbf{M} = \mathbf{W} + s \, \mathbf{I}

    where :math:`\mathbf{W}` is the normalized adjacency matrix :math:`\mathbf{A}`, and :math:`A_{ij}` is the weight of the edge
    :math:`(j, i)`. As in PyG, a node attends to the sources of its incoming edges. Parallel edges add up. A product takes
    :math:`O(E)`.

    Edges are followed: a node attends to nodes from which edges lead to it. :obj:`flow` reverses this.

    Args:
        heads (int): The number of heads. (default: that of the layer, or :obj:`1`)
        self_loop (float, optional): The initial weight :math:`s` of self-loops, learned per head. :obj:`None` adds no
            self-loops. (default: :obj:`1.0`)
        normalization (str, optional): :obj:`"sym"` for :math:`\mathbf{D}_{row}^{-1/2} \mathbf{A} \mathbf{D}_{col}^{-1/2}` with
            the sums of the absolute weights of the edges in each row and column, :obj:`"rw"` for
            :math:`\mathbf{D}_{row}^{-1} \mathbf{A}`, :obj:`None` for :math:`\mathbf{A}`. (default: :obj:`None`)
        flow (str): :obj:`"source_to_target"`, as in PyG: node :math:`i` attends to node :math:`j` along an edge
            :math:`(j, i)`; or :obj:`"target_to_source"`, along an edge :math:`(i, j)`. :math:`A_{ij}` is then the weight of
            the edge :math:`(i, j)`. (default: :obj:`"source_to_target"`)

    Raises:
        ValueError: If an argument is outside its range.

    Shapes:
        - **input:** graphs with :math:`|\mathcal{V}|` nodes and weighted edges
        - **output:** a mask operator :math:`(H, |\mathcal{V}|, |\mathcal{V}|)`
        - **parameters:** :obj:`self_loop` :math:`(H)`

    Example:
        >>> from torch_geometric.data import Data
        >>> AdjacencyMask()(Data(edge_index=torch.tensor([[0], [1]]), num_nodes=2)).to_dense()
        tensor([[[1., 0.],
                 [1., 1.]]], grad_fn=<PermuteBackward0>)
    """

    form = 'sparse'
    direction = 'followed'
    weights_by_head = True
    shown = ('normalization',)

    def __init__(
        self,
        heads: int = 1,
        self_loop: float | None = 1.0,
        normalization: str | None = None,
        flow: str = 'source_to_target',
    ) -> None:
        super().__init__(heads)
        check_normalization(normalization)
        check_flow(flow)
        if self_loop is not None:
            check_finite(self_loop=self_loop)
        self.normalization = normalization
        self.flow = flow
        self.initial = self_loop
        self.self_loop = None if self_loop is None else torch.nn.Parameter(torch.empty(heads))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        if self.self_loop is not None and self.initial is not None:
            torch.nn.init.constant_(self.self_loop, self.initial)

    def settings(self) -> Hashable:
        return type(self), self.normalization, self.flow, self.self_loop is None

    def prepare(self, graph: Graph, generator: torch.Generator | None = None) -> AdjacencyState:
        weight, loops = graph.normalized_weight(self.normalization, self.flow), self.self_loop is not None
        pattern, slot = graph.cached_of_edges(('edges', self.flow, loops), partial(_edges, graph, self.flow, loops))
        zero, of_edges, of_loops = weight.new_zeros(pattern.nnz), slot[: graph.num_edges], slot[graph.num_edges :]
        loop = zero.index_add(0, of_loops, torch.ones_like(of_loops, dtype=zero.dtype))
        return AdjacencyState(pattern, zero.index_add(0, of_edges, weight), loop)

    def bind(self, graph: Graph, state: AdjacencyState) -> MaskOperator:
        dtype = graph.weight_dtype
        if self.self_loop is None:
            value = state.weight.to(dtype).unsqueeze(0)
        else:
            dtype = torch.promote_types(dtype, self.self_loop.dtype)
            value = state.weight.to(dtype) + self.self_loop.unsqueeze(1) * state.loop.to(dtype)
        return sparse_operator(graph, state.pattern, value, self.heads)


def _edges(graph: Graph, flow: str, loops: bool) -> tuple[SparsePattern, Tensor]:
    r"""Returns the pattern of the edges, and of self-loops that are added to them, and the place of each in it."""
    row, col = graph.row_and_col(flow)
    if loops:
        nodes = torch.arange(graph.num_nodes, device=graph.device)
        row, col = torch.cat([row, nodes]), torch.cat([col, nodes])
    return SparsePattern.from_pairs(row, col, graph.num_nodes, graph.num_nodes)
