r"""Features of edges and pairs: edge weights learned from them, their bias of attention, and those from entries of a mask."""

from __future__ import annotations

import math
from functools import singledispatch
from typing import NamedTuple, TypeAlias

import torch
from torch import Tensor
from torch.nn import Linear, Module
from torch_geometric.data import Data
from torch_geometric.nn.inits import reset
from torch_geometric.utils import is_sparse

from pyg_topomask.errors import ArgumentError
from pyg_topomask.graphs.graph import Graph
from pyg_topomask.graphs.shared import graph_of_data
from pyg_topomask.graphs.sparse_pattern import SparsePattern
from pyg_topomask.masks import Mask
from pyg_topomask.nn.inputs import check_dtype, check_features, check_input_channels, input_of, linear
from pyg_topomask.operators.forms import Entries
from pyg_topomask.operators.sparse_matmul import spmm
from pyg_topomask.utils.checks import check_size, described
from pyg_topomask.utils.functorch import outside_transforms, readable, unwrapped
from pyg_topomask.utils.options import instance_of


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
        logit = logit.to(torch.promote_types(logit.dtype, torch.float32))  # autocast would round them
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
        bias = bias.to(torch.promote_types(bias.dtype, torch.float32))  # autocast would round its exponential
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
        if not self.incidence or self.incidence[0].num_rows != self.num_nodes * heads:
            with torch.inference_mode(False):  # for training later
                node = torch.div(self.key, max(self.num_nodes, 1), rounding_mode='floor')[self.slot]
                row = node.unsqueeze(1) * heads + torch.arange(heads, device=node.device)
                col = torch.arange(node.numel(), device=node.device).unsqueeze(1).expand_as(row)
                self.incidence[:] = [
                    SparsePattern.from_pairs(row.flatten(), col.flatten(), self.num_nodes * heads, node.numel())[0]
                ]
        return self.incidence[0]

    @outside_transforms
    def places(self, pattern: SparsePattern) -> Places:
        r"""Returns which pairs are entries of a pattern with ascending columns, and which entries these are. Entries that each
        head has for itself are in row and column :math:`iH + h` for head :math:`h` of node :math:`i`, and the numbers of their
        pairs are :math:`hP + p`.
        """
        heads = pattern.num_rows // max(self.num_nodes, 1)
        if heads > 1:  # the pairs differ in each step
            row, col = unwrapped(pattern.row).long(), unwrapped(pattern.col).long()
            node = torch.div(row, heads, rounding_mode='floor')
            other = torch.div(col, heads, rounding_mode='floor')
            entry, pair = _found(self.key, node * self.num_nodes + other)
            return (row - node * heads)[entry] * self.key.numel() + pair, entry
        if not self.found or self.found[0][0] is not pattern:
            with torch.inference_mode(False):  # for training later
                self.found[:] = [(pattern, _found(_keys(pattern), self.key))]
        return self.found[0][1]


def _found(keys: Tensor, wanted: Tensor) -> tuple[Tensor, Tensor]:
    r"""Returns which of the wanted keys are among the ascending ones, and where."""
    place = torch.searchsorted(keys, wanted)
    found = (torch.nn.functional.pad(keys, (0, 1), value=-1)[place] == wanted).nonzero().squeeze(1)
    return found, place[found]


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
        r"""Returns the product with the entries of a mask, or with entries that each head has for itself, as those of k-MIP
        attention, and where the pairs are among these.
        """
        if unwrapped(entries.pattern.col).dim() > 1:
            raise ArgumentError('x', 'a batch of torch.func.vmap', 'one without edge_dim')
        factor, logarithm, places = self.factor, self.logarithm, self.pairs.places(entries.pattern)
        if entries.pattern.num_rows > self.pairs.num_nodes:
            factor, logarithm = factor.reshape(1, -1), None if logarithm is None else logarithm.reshape(1, -1)
        return _times(entries, factor, logarithm, *places), places

    def value(self, alpha: Tensor, places: Places) -> Tensor:
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
        return torch.einsum('nhc,hdc->nhd', summed, torch.cat([matrix, bias.unsqueeze(2)], dim=2))

    def values_at(self, pairs: Tensor) -> Tensor:
        r"""Returns the vectors :math:`\mathbf{u}` of pairs :math:`(i, j)`, :obj:`[nnz, H, d]`, which are 0 without an edge."""
        vector = self.lin_value(self.edge_attr).unflatten(1, (self.factor.size(0), -1)) * self.share.unsqueeze(2)
        of_pairs = vector.new_zeros(self.pairs.key.numel(), *vector.shape[1:]).index_add(0, self.pairs.slot, vector)
        wanted, place = _found(self.pairs.key, pairs[0] * self.pairs.num_nodes + pairs[1])
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


class MaskEncoding(torch.nn.Module):
    r"""Learned features of pairs of nodes, from the entries of the heads of a sparse mask:

    .. math::
        \mathbf{e}_{ij} = \mathbf{W} \left( M^1_{ij}, \dots, M^H_{ij} \right)^{\top} + \mathbf{b}
        \quad \text{for all pairs with an entry}

    The pairs are edges, and the features their :obj:`edge_attr`, for any layer of PyG, and for attention with
    :obj:`edge_dim`. With the powers of the random-walk matrix as heads, these are the relative encodings of `"Graph Inductive
    Biases in Transformers without Message Passing" <https://arxiv.org/abs/2305.17589>`_ (Eq. 1):
    :obj:`PowerSeriesMask(K + 1, order=K, coefficients=torch.eye(K + 1), normalization="rw", learnable=False)`. With
    :obj:`HopMask(K + 1, max_hops=K, f=torch.eye(K + 1), learnable=False)`, each distance up to :math:`K` has a vector of its
    own, a column of :math:`\mathbf{W}`.

    Time and memory are linear in the number of pairs. Gradients also reach what the mask learns.

    Args:
        mask (Mask): A sparse mask. Each of its heads is an input.
        dim (int): Size of the features.

    Raises:
        ValueError: If an argument is outside its range, the mask has no sparse entries, or the graph is sharded.

    Shapes:
        - **input:** graphs with :math:`|\mathcal{V}|` nodes and edges
        - **output:** the pairs :math:`(j, i)` of node :math:`i` and what it attends to, :math:`(2, nnz)`, and their features
          :math:`(nnz, D)`

    Example:
        >>> from pyg_topomask.masks import HopMask
        >>> encoding = MaskEncoding(HopMask(heads=3, max_hops=2, f=torch.eye(3)), dim=4)
        >>> pairs, edge_attr = encoding(Data(edge_index=torch.tensor([[0, 1], [1, 0]]), num_nodes=2))
        >>> pairs.tolist(), edge_attr.shape
        ([[0, 1, 0, 1], [0, 0, 1, 1]], torch.Size([4, 4]))
    """

    def __init__(self, mask: Mask, dim: int) -> None:
        super().__init__()
        if not isinstance(mask, Mask):
            raise ArgumentError('mask', repr(mask), 'a Mask, such as HopMask(heads=3)', instance_of(mask))
        check_size(dim=dim)
        self.mask = mask
        self.lin = torch.nn.Linear(mask.heads, dim)

    def reset_parameters(self) -> None:
        r"""Resets all learnable parameters."""
        self.mask.reset_parameters()
        self.lin.reset_parameters()

    def forward(self, graph: Graph | Data, generator: torch.Generator | None = None) -> tuple[Tensor, Tensor]:
        r"""Returns the pairs, :obj:`[2, nnz]`, and their features, :obj:`[nnz, dim]`.

        Args:
            graph (Graph or torch_geometric.data.Data): The graphs.
            generator (torch.Generator, optional): The source of random numbers, if the mask uses any.
                (default: :obj:`None`)
        """
        graph = graph if isinstance(graph, Graph) else graph_of_data(graph)
        if not graph.segments.is_whole:
            raise ArgumentError('graph', 'a sharded graph', 'graphs of one process')
        operator = self.mask(graph, generator)
        if operator.entries is None:
            given = f'{type(self.mask).__name__}, which has no sparse entries on this graph'
            remedy = 'a PowerSeriesMask has none if edge weights require a gradient'
            raise ArgumentError(
                'mask', given, 'sparse masks, such as HopMask, PowerSeriesMask, AdjacencyMask and GRFMask', remedy
            )
        entries = operator.entries()
        value = entries.value.expand(self.mask.heads, -1).t()
        return entries.pairs.flip(0), self.lin(value.to(self.lin.weight.dtype))

    def __repr__(self) -> str:
        return f'{type(self).__name__}({self.mask}, {self.lin.out_features})'
