r"""Edge weights that are learned from edge features."""

from __future__ import annotations

from functools import singledispatch

import torch
from torch import Tensor
from torch_geometric.nn.inits import reset
from torch_geometric.utils import is_sparse

from pyg_topomask.errors import ArgumentError
from pyg_topomask.graphs.graph import Graph
from pyg_topomask.nn.inputs import check_dtype, check_features, check_input_channels, input_of, linear
from pyg_topomask.utils.checks import check_size, described
from pyg_topomask.utils.functorch import readable
from pyg_topomask.utils.precision import widened


class EdgeWeights(torch.nn.Module):
    r"""Positive edge weights, learned from edge features and, with :obj:`channels`, from the features of both end nodes:

    .. math::
        w_{ij} = 2 \, \sigma \left( \mathbf{v}^{\top} \max(\mathbf{W}_e \mathbf{e}_{ij} + \mathbf{b} + \mathbf{W}_x
        (\mathbf{x}_i + \mathbf{x}_j), 0) + c \right)

    This is our own gate. A mask reads the weights as :obj:`edge_weight`, and hands gradients on to them. :math:`\mathbf{v}` and
    :math:`c` start at 0, and all weights at 1, so that the mask starts as that of the graph without weights. Weights are below
    2. All heads share them, or with :obj:`heads`, each has its own :math:`\mathbf{v}` and :math:`c`. Edges in both directions
    with equal features have equal weights, up to rounding.

    Time and memory are :math:`O(E)`.

    Args:
        edge_dim (int): Size of the edge features; :obj:`-1` is inferred at the first call.
        channels (int, optional): Size of the node features; :obj:`-1` is inferred at the first call. :obj:`None` does not read
            them. (default: :obj:`None`)
        hidden_channels (int): The number of hidden units. (default: :obj:`32`)
        symmetric (bool): Give all edges between two nodes, in both directions, the mean of the logits, so that their weights
            are equal. Heat kernels with :obj:`kind="laplacian"` or :obj:`"normalized_laplacian"` need this if features
            depend on the direction. (default: :obj:`False`)
        heads (int, optional): The number of heads of the mask, each with its own weights. The mask is then prepared for each
            head. :obj:`None` gives all heads the same. (default: :obj:`None`)

    Shapes:
        - **input:** edge features :math:`(|\mathcal{E}|, D)`, edge indices :math:`(2, |\mathcal{E}|)`, node features
          :math:`(|\mathcal{V}|, F)` *(optional)*
        - **output:** edge weights :math:`(|\mathcal{E}|)`, or :math:`(|\mathcal{E}|, H)` with :obj:`heads`

    Example:
        >>> weights = EdgeWeights(edge_dim=4)
        >>> weights(torch.randn(2, 4), torch.tensor([[0, 1], [1, 0]]))
        tensor([1., 1.], grad_fn=<MulBackward0>)
    """

    def __init__(
        self,
        edge_dim: int,
        channels: int | None = None,
        hidden_channels: int = 32,
        symmetric: bool = False,
        heads: int | None = None,
    ) -> None:
        super().__init__()
        check_input_channels(edge_dim, 'edge_dim')
        if channels is not None:
            check_input_channels(channels, 'channels')
        check_size(hidden_channels=hidden_channels)
        if heads is not None:
            check_size(heads=heads)
        self.heads = None if heads == 1 else heads
        self.edge_dim = edge_dim
        self.channels = channels
        self.symmetric = symmetric
        self.lin_edge = linear(edge_dim, hidden_channels)
        self.lin_node = None if channels is None else linear(channels, hidden_channels, bias=False)
        self.lin_out = torch.nn.Linear(hidden_channels, self.heads or 1)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        r"""Resets all learnable parameters."""
        reset(self.lin_edge)
        reset(self.lin_node)
        torch.nn.init.zeros_(self.lin_out.weight)
        torch.nn.init.zeros_(self.lin_out.bias)

    def forward(self, edge_attr: Tensor, edge_index: Tensor, x: Tensor | None = None) -> Tensor:
        r"""Returns the weights, :obj:`[E]`, or :obj:`[E, heads]`.

        Args:
            edge_attr (torch.Tensor): The edge features, :obj:`[E, edge_dim]`.
            edge_index (torch.Tensor): The edge indices, :obj:`[2, E]`.
            x (torch.Tensor, optional): The node features, :obj:`[N, channels]`, with :obj:`channels`. (default: :obj:`None`)
        """
        if not isinstance(edge_index, Tensor) or is_sparse(edge_index) or edge_index.shape[:-1] != (2,):
            given = 'a sparse matrix' if is_sparse(edge_index) else described(edge_index)
            raise ArgumentError('edge_index', given, 'the edges in the order of their features, [2, E]')
        check_edge_features(edge_attr, edge_index.size(1), *input_of(self.lin_edge))
        hidden, ends = self.lin_edge(edge_attr), edge_index.long()
        if self.lin_node is not None:
            if x is None:
                raise ArgumentError('x', None, f'the features of the nodes, [N, {self.channels}], or channels=None')
            check_features(x, *input_of(self.lin_node))
            nodes = self.lin_node(x)
            hidden = hidden + (nodes.index_select(0, ends[0]) + nodes.index_select(0, ends[1]))
        logit = self.lin_out(hidden.relu())
        logit = logit.squeeze(1) if self.heads is None else logit
        logit = widened(logit)  # autocast would round them
        weight = 2 * (_mean_of_directions(logit, ends) if self.symmetric else logit).sigmoid()
        if readable(weight) and not bool(weight.isfinite().all()):
            edge, *_ = (~weight.isfinite()).nonzero()[0].tolist()
            given = f'features of edge {edge} whose weight is not finite'
            raise ArgumentError('edge_attr', given, 'finite features of edges and nodes, and finite parameters')
        return weight

    def weigh(self, graph: Graph, edge_attr: Tensor | None, x: Tensor) -> Graph:
        r"""Returns the graph with the weights of its edges, times those that it has. The other arguments are those of
        :meth:`forward`.
        """
        if self.symmetric and not graph.segments.is_whole:
            raise ArgumentError('symmetric', 'True on a sharded graph, whose processes hold one direction', 'False')
        if edge_attr is None:
            raise ArgumentError('edge_attr', None, f'the features of the edges, [E, {self.edge_dim}]')
        nodes = None if self.lin_node is None else features_of_ends(graph, x)
        weight, given = self(edge_attr, graph.edge_index, nodes), graph.edge_weight
        if given is not None:
            weight = weight * (given.unsqueeze(1) if given.dim() < weight.dim() else given)
        return graph.with_weights(weight)

    def __repr__(self) -> str:
        heads = '' if self.heads is None else f', heads={self.heads}'
        return f'{type(self).__name__}({self.edge_dim}, channels={self.channels}, symmetric={self.symmetric}{heads})'


@singledispatch
def features_of_ends(graph: Graph, x: Tensor) -> Tensor:
    r"""Returns the features of the nodes that :obj:`edge_index` of a graph counts. On a graph of several processes, some are of
    others.
    """
    return x


def check_edge_features(edge_attr: Tensor, num_edges: int, edge_dim: int, dtype: torch.dtype) -> None:
    r"""Raises an error unless edge features have a row for each edge and the data type of the parameters."""
    size = 'edge_dim' if edge_dim == -1 else edge_dim
    accepted = f'[{num_edges}, {size}] of {dtype}, a row for each edge'
    if not isinstance(edge_attr, Tensor) or not edge_attr.is_floating_point():
        remedy = f'use torch.nn.Embedding(num_types, {size})(edge_attr.view(-1)) for types, and edge_attr.float() for counts'
        raise ArgumentError('edge_attr', described(edge_attr), accepted, remedy)
    if edge_attr.dim() != 2 or edge_attr.size(0) != num_edges or edge_dim not in (-1, edge_attr.size(1)):
        remedy = ''
        if edge_attr.dim() == 1:
            remedy = 'use edge_attr.view(-1, 1), and edge_dim=1'
        elif edge_attr.size(0) != num_edges:
            remedy = 'edges that are added later, such as self-loops, need features too: AddSelfLoops(attr="edge_attr")'
        raise ArgumentError('edge_attr', described(edge_attr), accepted, remedy)
    check_dtype(dtype, edge_attr=edge_attr)


def _mean_of_directions(logit: Tensor, ends: Tensor) -> Tensor:
    r"""Returns the mean over all edges between the same two nodes, for each edge, in the shape of the logits."""
    low, high = ends.sort(0).values
    _, pair, count = (low << 32 | high).unique(return_inverse=True, return_counts=True)
    total = logit.new_zeros(count.numel(), *logit.shape[1:]).index_add(0, pair, logit)
    return (total / count.view(-1, *[1] * (logit.dim() - 1))).index_select(0, pair)
