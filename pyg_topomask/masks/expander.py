r"""Random regular graphs over the nodes, as edges and as a mask."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor
from torch_geometric.utils import lexsort

from pyg_topomask.errors import ArgumentError
from pyg_topomask.graphs.edges import check_flow
from pyg_topomask.graphs.graph import Graph
from pyg_topomask.graphs.sparse_pattern import SparsePattern
from pyg_topomask.masks.base.mask import Mask
from pyg_topomask.operators.base import MaskOperator
from pyg_topomask.operators.sparse import sparse_operator
from pyg_topomask.utils.checks import check_choice, check_even, checked_seed
from pyg_topomask.utils.random import counter_uniform


def expander_edges(graph: Graph, degree: int, seed: int = 0) -> Tensor:
    r"""Samples a random regular graph over the nodes of each graph, as the union of random cycles through all nodes. It is
    undirected and connected, and an expander with high probability (`Friedman, 2003
    <https://doi.org/10.1145/780542.780646>`_), as in `"Exphormer: Sparse Transformers for Graphs"
    <https://arxiv.org/abs/2303.06147>`_ (Sec. 3.2). The edges depend only on the number of nodes and the seed.

    Each cycle adds two to the degree, which must be even. Returns the edges in both directions, without self-loops, :obj:`[2,
    E]`. In small graphs, cycles can share edges, which are then parallel.
    """
    check_even(degree=degree)
    nodes = torch.arange(graph.num_nodes, device=graph.device)
    segments = graph.segments
    first, after = segments.first, segments.ptr[1:][segments.index]
    # A cycle through each graph: its nodes, sorted by random numbers that depend on the position in the graph.
    uniform = counter_uniform(seed, segments.position, 1)
    edges = []
    for draw in range(degree // 2):
        shuffled = lexsort([uniform(draw, nodes), segments.index])
        following = shuffled[torch.where(nodes + 1 == after, first, nodes + 1)]
        edges.append(torch.stack([shuffled, following]))
    both = torch.cat([torch.cat([edge, edge.flip(0)], dim=1) for edge in edges], dim=1)
    return both[:, both[0] != both[1]]


@dataclass(frozen=True)
class ExpanderState:
    r"""The pairs of nodes that attend to each other, and the entries of the mask, :obj:`[nnz]`, or :obj:`None` for ones."""

    pattern: SparsePattern
    value: Tensor | None


class ExpanderMask(Mask):
    r"""Attention along the edges of a random regular graph and of the input graph, and to the node itself, from `"Exphormer:
    Sparse Transformers for Graphs" <https://arxiv.org/abs/2303.06147>`_ (Sec. 3.2). The mask is 1 for these pairs of nodes and
    0 for all others. Exphormer's edge features are not included. For each virtual node, apply
    :class:`torch_geometric.transforms.VirtualNode` once to the data. A product takes :math:`O(E + N \, \text{degree})`.

    The edges of the input graph are followed: a node attends to nodes from which edges lead to it. :obj:`flow` reverses this.
    Random edges go both ways. With :obj:`input_edges=False`, the mask ignores edges.

    By default, edge weights have no effect. With :obj:`input_weights`, the entries of pairs that are edges of the input graph
    are their weights, also if a random edge joins the same nodes:

    .. math::
        M_{ij} = \begin{cases} w_{ij} & \text{for an edge } (j, i) \text{ of the input graph} \\
        1 & \text{for all other random edges, and for } i = j \text{ without a self-loop} \end{cases}

    Parallel edges have their mean weight. With weights of 1, this is the mask without weights. Gradients reach edge weights
    that require them, such as those that :class:`~pyg_topomask.nn.EdgeWeights` learns. Softmax attention needs weights of at
    least 0.

    Args:
        heads (int): The number of heads. (default: :obj:`1`)
        degree (int): The number of neighbors of a node in the random graph, even. (default: :obj:`6`)
        input_edges (bool): Also attend along the edges of the input graph. (default: :obj:`True`)
        seed (int): The seed of the random graph. (default: :obj:`0`)
        flow (str): The direction of attention along edges, see :class:`~pyg_topomask.masks.AdjacencyMask`.
            (default: :obj:`"source_to_target"`)
        input_weights (bool): Let the edges of the input graph have their weights. (default: :obj:`False`)

    Raises:
        ValueError: If :obj:`degree` is not a positive even number, :obj:`flow` is unknown, or :obj:`input_weights` is
            :obj:`True` with :obj:`input_edges=False`.

    Shapes:
        - **input:** graphs with :math:`|\mathcal{V}|` nodes and edges
        - **output:** a mask operator :math:`(H, |\mathcal{V}|, |\mathcal{V}|)`

    Example:
        >>> from torch_geometric.data import Data
        >>> ExpanderMask(degree=2)(Data(num_nodes=3)).to_dense()
        tensor([[[1., 1., 1.],
                 [1., 1., 1.],
                 [1., 1., 1.]]])
    """

    form = 'sparse'
    local = False
    weights_by_head = True
    reads_weights_by = 'input_weights=True'

    def __init__(
        self,
        heads: int = 1,
        degree: int = 6,
        input_edges: bool = True,
        seed: int = 0,
        flow: str = 'source_to_target',
        input_weights: bool = False,
    ) -> None:
        super().__init__(heads)
        check_even(degree=degree)
        check_flow(flow)
        check_choice((False, True), input_weights=input_weights)
        if input_weights and not input_edges:
            raise ArgumentError('input_weights', 'True with input_edges=False', 'False', 'input_edges=True reads the edges')
        self.degree = degree
        self.input_edges = input_edges
        self.seed = checked_seed(seed=seed)
        self.flow = flow
        self.input_weights = bool(input_weights)

    @property
    def weighted(self) -> bool:  # type: ignore[override]
        return self.input_weights

    @property
    def direction(self) -> str:  # type: ignore[override]
        return 'followed' if self.input_edges else 'unused'

    def settings(self) -> Hashable:
        return type(self), self.degree, self.input_edges, self.seed, self.flow, self.input_weights

    def prepare(self, graph: Graph, generator: torch.Generator | None = None) -> ExpanderState:
        key = 'expander', self.degree, self.seed, self.flow, self.input_edges
        pattern, slot = graph.cached_of_edges(key, partial(self._pairs, graph))
        return self.state_of(pattern, slot, graph.weight.to(graph.weight_dtype))

    def _pairs(self, graph: Graph) -> tuple[SparsePattern, Tensor]:
        nodes = torch.arange(graph.num_nodes, device=graph.device)
        pairs = [nodes.expand(2, -1), expander_edges(graph, self.degree, self.seed)]
        if self.input_edges:
            pairs.append(torch.stack(graph.row_and_col(self.flow)))
        row, col = torch.cat(pairs, dim=1)
        return SparsePattern.from_pairs(row, col, graph.num_nodes, graph.num_nodes)

    def state_of(self, pattern: SparsePattern, slot: Tensor, weight: Tensor) -> ExpanderState:
        r"""Returns the state for the place of each pair in the pattern, of which those of the input graph, with the given
        weights, are the last.
        """
        if not self.input_weights:
            return ExpanderState(pattern, None)
        of_edges, zero = slot[slot.numel() - weight.numel() :], weight.new_zeros(pattern.nnz)
        count = zero.index_add(0, of_edges, torch.ones_like(weight))
        mean = zero.index_add(0, of_edges, weight) / count.clamp(min=1.0)
        return ExpanderState(pattern, torch.where(count > 0, mean, 1.0))

    def bind(self, graph: Graph, state: ExpanderState) -> MaskOperator:
        value = torch.ones(state.pattern.nnz, device=graph.device) if state.value is None else state.value
        return sparse_operator(graph, state.pattern, value.unsqueeze(0), self.heads)
