r"""Multi-head linear attention under any mask."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.nn.inits import reset
from torch_geometric.typing import Adj

from pyg_topomask.errors import ArgumentError, warn
from pyg_topomask.feature_maps.feature_map import FeatureMap
from pyg_topomask.feature_maps.names import feature_map_of_name
from pyg_topomask.graphs.graph import Graph
from pyg_topomask.masks import Mask, PackingMask
from pyg_topomask.masks.base.kinds import LogarithmicMask
from pyg_topomask.nn.explicit_attention import CoefficientMessages
from pyg_topomask.nn.inputs import (
    ReadsGraph,
    check_features,
    compiled_if_prepared,
    fit_mask,
    flow_under,
    graph_for,
    input_of,
    linear,
    resolve_channels,
)
from pyg_topomask.operators.base import MaskOperator
from pyg_topomask.ops import masked_linear_attention
from pyg_topomask.ops.routes.choice import ROUTES
from pyg_topomask.ops.routes.edges import linear_coefficients
from pyg_topomask.utils.checks import check_choice, check_probability
from pyg_topomask.utils.functorch import LoopedFunction
from pyg_topomask.utils.options import instance_of
from pyg_topomask.utils.precision import widened


def on_near_graph(
    graph: Graph,
    mask: Mask,
    generator: torch.Generator | None,
    attend: Callable[..., Tensor],
    *features: Tensor,
) -> Tensor:
    r"""Returns :obj:`attend(operator, *features)` for the operator of a mask and features of the nodes, in rows. If
    :meth:`~pyg_topomask.graphs.Graph.near` has a graph for it, rows are permuted there and back.
    """
    near = graph.near(mask, generator)
    if near is None:
        return attend(mask(graph, generator), *features)
    inside = (_Permuted.apply(x, near.order, near.place) for x in features)
    return _Permuted.apply(attend(mask(near), *inside), near.place, near.order)


class _Permuted(LoopedFunction):
    r"""Permutes rows. The gradient takes the inverse permutation, which is faster than adding to rows."""

    @staticmethod
    def forward(x: Tensor, order: Tensor, place: Tensor) -> Tensor:
        return x.index_select(0, order)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        _, *permutations = inputs
        ctx.save_for_backward(*permutations)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        order, place = ctx.saved_tensors
        return _Permuted.apply(grads[0], place, order), None, None


class MaskedLinearAttention(ReadsGraph, CoefficientMessages):
    r"""Multi-head linear attention with scores multiplied by a topological mask, from `"Linear Transformer Topological
    Masking with Graph Random Features" <https://arxiv.org/abs/2410.03462>`_ (Eq. 2 and 7):

    .. math::
        \mathbf{y}_i = \mathbf{W}_o \frac{\sum_j M_{ij} \, s_{ij} \, \mathbf{W}_v \mathbf{x}_j}{\sum_j M_{ij} \, s_{ij}},
        \qquad s_{ij} = \phi(\mathbf{W}_q \mathbf{x}_i)^{\top} \phi(\mathbf{W}_k \mathbf{x}_j)

    Time and memory are linear in the number of nodes if products with the mask are. Nodes attend only within their graph, and
    the output for a graph does not depend on the other graphs of a batch. The :obj:`direction` of a mask says what it does with
    the direction of edges. Without a mask, edges are not used. Edge weights that have no effect give a warning, once.

    The layer is message passing of PyG. It passes messages only where explainers look at coefficients, which it has under
    sparse masks.

    Under autocast, the layer warns once if the mask has learned negative numbers. Terms of opposite sign then cancel, which
    magnifies the rounding errors of queries and keys.

    Attention is a mean, which forgets how many nodes it is over and how much weight they have. With :obj:`sums=True`, the
    output projection also reads sums under the mask on a logarithmic scale. Means and sums side by side are an idea of the
    `"Principal Neighbourhood Aggregation for Graph Nets" <https://arxiv.org/abs/2004.05718>`_ paper:

    .. math::
        \mathbf{y}_i = \mathbf{W}_o \left[ \mathbf{a}_i \, \Vert \, g \left( \textstyle \sum_j M_{ij} \max(\mathbf{W}_s
        \mathbf{x}_j, 0) \right) \right], \qquad g(t) = \operatorname{sign}(t) \log(1 + |t|)

    where :math:`\mathbf{a}_i` is the mean above. If a mask grows with the distance, the logarithm is close to the largest
    distance.

    Args:
        channels (int): Size of each input sample; :obj:`-1` is inferred at the first call, and needs :obj:`out_channels`.
        heads (int): The number of heads. (default: :obj:`1`)
        mask (Mask, optional): The mask, with :obj:`heads` heads, or one head that all share. One made without :obj:`heads` gets
            those of the layer. :obj:`None` is unmasked linear attention within each graph. (default: :obj:`None`)
        feature_map (str or FeatureMap): :math:`\phi`: a :class:`~pyg_topomask.feature_maps.FeatureMap`, or one of
            :obj:`"relu"`, :obj:`"elu"`, :obj:`"square"`, :obj:`"identity"`, :obj:`"focused"`, :obj:`"favor"`,
            :obj:`"positive"`, :obj:`"simplex"`, :obj:`"derf"` and :obj:`"fourier"`. The last five take an optional number of
            random features, as in :obj:`"favor:64"`. (default: :obj:`"relu"`)
        dropout (float): Dropout probability of the output. (default: :obj:`0.0`)
        bias (bool): Learn additive biases in the projections. (default: :obj:`True`)
        route (str): How to apply the mask, see :func:`~pyg_topomask.ops.masked_linear_attention`.
            (default: :obj:`"auto"`)
        out_channels (int, optional): Size of each output sample. (default: :obj:`channels`)
        sums (bool): Also read sums under the mask. The layer then has twice the features and learns
            :math:`\mathbf{W}_s`. (default: :obj:`False`)

    Shapes:
        - **input:** node features :math:`(|\mathcal{V}|, F)`, edge indices :math:`(2, |\mathcal{E}|)`, edge weights
          :math:`(|\mathcal{E}|)` *(optional)*, batch vector :math:`(|\mathcal{V}|)` *(optional)*
        - **output:** node features :math:`(|\mathcal{V}|, F_{out})`

    Example:
        >>> from pyg_topomask.masks import GRFMask
        >>> attention = MaskedLinearAttention(16, heads=4, mask=GRFMask(heads=4))
        >>> attention(torch.randn(3, 16), torch.tensor([[0, 1], [1, 0]])).shape
        torch.Size([3, 16])
    """

    def __init__(
        self,
        channels: int,
        heads: int = 1,
        mask: Mask | None = None,
        feature_map: str | FeatureMap = 'relu',
        dropout: float = 0.0,
        bias: bool = True,
        route: str = 'auto',
        out_channels: int | None = None,
        sums: bool = False,
    ) -> None:
        super().__init__(flow_under(mask))
        out_channels = resolve_channels(channels, out_channels, heads)
        check_probability(dropout=dropout)
        check_choice(ROUTES, route=route)
        self.channels = channels
        self.out_channels = out_channels
        self.heads = heads
        self.dropout = dropout
        self.route = route
        self._warned = False
        self.mask = PackingMask() if mask is None else mask
        fit_mask(self.mask, heads)
        self.feature_map = resolve_feature_map(feature_map, out_channels // heads)
        self.lin_q = linear(channels, out_channels, bias=bias)
        self.lin_k = linear(channels, out_channels, bias=bias)
        self.lin_v = linear(channels, out_channels, bias=bias)
        self.lin_sum = linear(channels, out_channels, bias=bias) if sums else None
        self.lin_out = linear(2 * out_channels if sums else out_channels, out_channels, bias=bias)

    def reset_parameters(self) -> None:
        r"""Resets all learnable parameters, and redraws random features."""
        super().reset_parameters()
        for module in (self.lin_q, self.lin_k, self.lin_v, self.lin_sum, self.lin_out, self.feature_map, self.mask):
            reset(module)

    def forward(
        self,
        x: Tensor,
        edge_index: Adj | None = None,
        edge_weight: Tensor | None = None,
        batch: Tensor | None = None,
        graph: Graph | Data | None = None,
        generator: torch.Generator | None = None,
    ) -> Tensor:
        r"""Runs the forward pass.

        Args:
            x (torch.Tensor): The node features, :obj:`[N, channels]`.
            edge_index (torch.Tensor or SparseTensor, optional): The edge indices, :obj:`[2, E]`, or :obj:`adj_t`.
                (default: :obj:`None`, those of :obj:`graph`)
            edge_weight (torch.Tensor, optional): The edge weights, :obj:`[E]`. (default: :obj:`None`)
            batch (torch.Tensor, optional): The graph of each node, ascending, :obj:`[N]`. (default: :obj:`None`)
            graph (Graph or torch_geometric.data.Data, optional): Replaces the three arguments above.
                Layers that receive the same :class:`~pyg_topomask.graphs.Graph` check it once, and share prepared masks.
                (default: :obj:`None`)
            generator (torch.Generator, optional): The source of random numbers, if the mask uses any.
                (default: :obj:`None`)
        """
        check_features(x, *input_of(self.lin_q))
        self._warn_of_rounding(x.device.type)
        attend = compiled_if_prepared(self._attend, graph, self.mask)
        out = attend(generator, x, edge_index, edge_weight, batch, graph)
        return torch.nn.functional.dropout(self.lin_out(out.flatten(1)), self.dropout, self.training)

    def by_head(self, x: Tensor) -> Tensor:
        r"""Splits channels between the heads, from :obj:`[N, out_channels]` to :obj:`[N, H, out_channels // H]`."""
        return x.view(-1, self.heads, self.out_channels // self.heads)

    def mask_for(self, x: Tensor, graph: Graph, generator: torch.Generator | None = None) -> MaskOperator:
        r"""Returns the mask under which the layer attends to the nodes of a graph with features :obj:`[N, channels]`."""
        return self.mask(graph, generator)

    def _attend(self, generator: torch.Generator | None, x: Tensor, *given: Any) -> Tensor:
        graph = graph_for(self, x, *given)
        if self.looked_at and graph.segments.is_whole:
            return self._attend_under(self.mask_for(x, graph, generator), x, graph)
        return on_near_graph(graph, self.mask, generator, self._attend_under, x)

    def _attend_under(self, mask: MaskOperator, x: Tensor, seen_on: Graph | None = None) -> Tensor:
        q, k, v = (self.by_head(lin(x)) for lin in (self.lin_q, self.lin_k, self.lin_v))
        q, k = self.feature_map(q, k, mask.segments)
        if seen_on is None or mask.entries is None:
            attended = masked_linear_attention(q, k, v, mask, self.route)
        else:
            entries = mask.entries()
            attended = self.propagate_coefficients(seen_on, entries.pairs, linear_coefficients(q, k, entries).t(), v)
        return attended if self.lin_sum is None else torch.cat([attended, self._summed_under(mask, x)], dim=-1)

    def _summed_under(self, mask: MaskOperator, x: Tensor) -> Tensor:
        assert self.lin_sum is not None
        values = self.by_head(self.lin_sum(x).relu())
        with torch.autocast(device_type=x.device.type, enabled=False):  # sums over many nodes
            total = mask.matmul(widened(values))
            # The derivative is 1 at 0, where that of sign(t) log(1 + |t|) would be 0.
            return (total.clamp(min=0).log1p() - (-total).relu().log1p()).to(values.dtype)

    def _warn_of_rounding(self, device: str) -> None:
        r"""Warns once if rounding of queries and keys may be amplified by sums of masks that cancel."""
        if self._warned or torch.compiler.is_compiling() or not torch.is_autocast_enabled(device):
            return
        masks = (mask for mask in self.mask.modules() if isinstance(mask, LogarithmicMask))
        name = next((name for mask in masks if (name := mask.negative()) is not None), None)
        if name is not None:
            self._warned = True
            warn(
                f'{name}: got negative numbers under autocast, which rounds queries and keys to '
                f'{torch.get_autocast_dtype(device)}. Sums that normalize attention may cancel, and errors are then large. '
                f'Prefer positive=True, or disable autocast for this layer.'
            )

    def __repr__(self) -> str:
        return (
            f'{type(self).__name__}({self.channels}, {self.out_channels}, heads={self.heads}, mask={self.mask}, '
            f'feature_map={self.feature_map}{"" if self.lin_sum is None else ", sums=True"})'
        )


def resolve_feature_map(feature_map: str | FeatureMap, channels: int) -> FeatureMap:
    r"""Returns the feature map with the given name, or the given feature map if its channels fit."""
    if isinstance(feature_map, FeatureMap):
        if feature_map.channels != channels:
            raise ArgumentError('feature_map', f'a map of {feature_map.channels} channels', f'{channels} per head')
        return feature_map
    if not isinstance(feature_map, str):
        given = repr(feature_map)
        raise ArgumentError('feature_map', given, 'names such as "relu", and a FeatureMap', instance_of(feature_map))
    return feature_map_of_name(feature_map, channels)
