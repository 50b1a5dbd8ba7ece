r"""Linear attention layers that create their mask and are named after it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from pyg_topomask.errors import ArgumentError
from pyg_topomask.feature_maps.feature_map import FeatureMap
from pyg_topomask.graphs.graph import Graph
from pyg_topomask.masks import GRFMask, HopMask, SinDegreeMask, ToeplitzMask
from pyg_topomask.masks.base.kinds import warn_of_lost_gradient
from pyg_topomask.masks.rwgnk import RWGNKMask
from pyg_topomask.nn.inputs import graph_for, with_mask
from pyg_topomask.nn.masked_linear_attention import MaskedLinearAttention
from pyg_topomask.operators.base import MaskOperator
from pyg_topomask.utils.checks import check_choice
from pyg_topomask.utils.functorch import is_exporting, unwrapped
from pyg_topomask.utils.options import options_of
from pyg_topomask.walks.steps import SAMPLERS

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from pyg_topomask.nn.options import (
        GRFAttentionOptions,
        HopAttentionOptions,
        RWGNKAttentionOptions,
        SinDegreeAttentionOptions,
        ToeplitzAttentionOptions,
    )


@options_of(GRFMask, MaskedLinearAttention, without=['mask'])
class GRFAttention(MaskedLinearAttention):
    r"""Linear attention masked by a learnable function of the weighted adjacency matrix, estimated by random walks, from
    `"Linear Transformer Topological Masking with Graph Random Features" <https://arxiv.org/abs/2410.03462>`_ (Algorithm 1).
    The layer is :class:`~pyg_topomask.nn.MaskedLinearAttention` with a :class:`~pyg_topomask.masks.GRFMask`:

    .. math::
        \mathbf{M} = \hat{\Phi} \hat{\Psi}^{\top}, \qquad \mathbb{E} \, \hat{\Phi} = \sum_{l=0}^{L} f_l \mathbf{W}^l

    With :obj:`graph=Graph.from_data(data)`, the layer uses the walks stored by
    :class:`~pyg_topomask.transforms.AddGraphRandomFeatures`. Otherwise, it samples the walks.
    :class:`~pyg_topomask.masks.GRFMask` lists the options that must agree with those of stored walks.

    Time and memory are :math:`O(N n L)` for :math:`n` walks of at most :math:`L` hops, for any number of edges.

    Example:
        >>> import torch
        >>> attention = GRFAttention(16, heads=4, num_walks=8)
        >>> attention(torch.randn(3, 16), torch.tensor([[0, 1], [1, 0]])).shape
        torch.Size([3, 16])
    """

    mask: GRFMask

    def __init__(self, channels: int, heads: int = 1, **options: Unpack[GRFAttentionOptions]) -> None:
        super().__init__(channels, heads, **with_mask(GRFMask, heads, options))


@options_of(HopMask, MaskedLinearAttention, without=['mask'])
class HopAttention(MaskedLinearAttention):
    r"""Linear attention to the nodes within :math:`K` edges, weighted by a learned function of the shortest-path distance
    :math:`d(i, j)`. The layer is :class:`~pyg_topomask.nn.MaskedLinearAttention` with a :class:`~pyg_topomask.masks.HopMask`:

    .. math::
        M_{ij} = f_{d(i, j)} \text{ for } d(i, j) \le K, \text{ else } 0

    Time and memory are :math:`O(\text{pairs})` for the pairs of nodes within :math:`K` edges, of which there may be
    :math:`2^{26}`.

    Try the feature map :obj:`"square"` too: it was better than ReLU on two of five tasks, and not distinguishable on three
    (:obj:`benchmarks/results/accuracy_variants.md`).

    Example:
        >>> import torch
        >>> attention = HopAttention(16, heads=4, max_hops=2)
        >>> attention(torch.randn(3, 16), torch.tensor([[0, 1], [1, 0]])).shape
        torch.Size([3, 16])
    """

    mask: HopMask

    def __init__(self, channels: int, heads: int = 1, **options: Unpack[HopAttentionOptions]) -> None:
        super().__init__(channels, heads, **with_mask(HopMask, heads, options))


@options_of(SinDegreeMask, MaskedLinearAttention, without=['mask'])
class SinDegreeAttention(MaskedLinearAttention):
    r"""Linear attention between all nodes of a graph, weighted by their learned degree centralities, from `"Masked Graph
    Transformer for Large-Scale Recommendation" <https://doi.org/10.1145/3626772.3657971>`_ (Eq. 12). The layer is
    :class:`~pyg_topomask.nn.MaskedLinearAttention` with a :class:`~pyg_topomask.masks.SinDegreeMask`:

    .. math::
        M_{ij} = \sin \left( \tfrac{\pi}{4} (z_i + z_j) \right)

    Time and memory are :math:`O(N)`, twice as much as without the mask.

    Args:
        feature_map (str or FeatureMap): See :class:`~pyg_topomask.nn.MaskedLinearAttention`; the default is the paper's.
            (default: :obj:`"simplex"`)

    Example:
        >>> import torch
        >>> attention = SinDegreeAttention(16, heads=4)
        >>> attention(torch.randn(3, 16), torch.tensor([[0, 1], [1, 0]])).shape
        torch.Size([3, 16])
    """

    mask: SinDegreeMask

    def __init__(
        self,
        channels: int,
        heads: int = 1,
        *,
        feature_map: str | FeatureMap = 'simplex',
        **options: Unpack[SinDegreeAttentionOptions],
    ) -> None:
        super().__init__(channels, heads, feature_map=feature_map, **with_mask(SinDegreeMask, heads, options))


@options_of(ToeplitzMask, MaskedLinearAttention, without=['mask'])
class ToeplitzAttention(MaskedLinearAttention):
    r"""Linear attention between all nodes of a graph, weighted by their relative position on a line or a grid, from `"From
    block-Toeplitz matrices to differential equations on graphs" <https://arxiv.org/abs/2107.07999>`_ (Sec. 3.2, Lemma 3.3).
    The layer is :class:`~pyg_topomask.nn.MaskedLinearAttention` with a :class:`~pyg_topomask.masks.ToeplitzMask`:

    .. math::
        M_{ij} = \xi(\mathbf{p}_i - \mathbf{p}_j)

    Time is :math:`O(N \log N)`, and memory is :math:`O(N)`.

    Args:
        shape_dims (int): The number of dimensions of the grids. With :obj:`1`, nodes are on a line in their order, like the
            tokens of a sequence. Other grids need :obj:`graph=data` with :obj:`data.grid_shape`. (default: :obj:`1`, and
            :obj:`2` in a YAML)

    Example:
        >>> import torch
        >>> attention = ToeplitzAttention(16, heads=4)
        >>> attention(torch.randn(5, 16), torch.empty(2, 0, dtype=torch.long), batch=torch.tensor([0, 0, 0, 1, 1])).shape
        torch.Size([5, 16])
    """

    mask: ToeplitzMask

    def __init__(self, channels: int, heads: int = 1, shape_dims: int = 1, **options: Unpack[ToeplitzAttentionOptions]) -> None:
        super().__init__(channels, heads, **with_mask(ToeplitzMask, heads, options, shape_dims=shape_dims))


@options_of(RWGNKMask, MaskedLinearAttention, without=['mask'])
class RWGNKAttention(MaskedLinearAttention):
    r"""Linear attention masked by the random walks graph-nodes kernel, from `"From block-Toeplitz matrices to differential
    equations on graphs" <https://arxiv.org/abs/2107.07999>`_ (Sec. 4.2). The layer is
    :class:`~pyg_topomask.nn.MaskedLinearAttention` with a :class:`~pyg_topomask.masks.RWGNKMask`. The graph kernel attention
    Transformer (:class:`~pyg_topomask.nn.models.GKAT`) consists of such layers.

    .. math::
        M_{ij} = \frac{\mathbf{F}_i \mathbf{F}_j^{\top}}{\| \mathbf{F}_i \|_2^{\alpha} \, \| \mathbf{F}_j \|_2^{\alpha}}

    With :obj:`graph=Graph.from_data(data)`, the layer uses the walks stored by
    :class:`~pyg_topomask.transforms.AddRandomWalkKernel`. Otherwise, it samples the walks.

    With :obj:`dynamic=True`, walks follow the current attention of the layer (App. A.5.2). A walk hops from node :math:`i` to
    node :math:`j` with probability

    .. math::
        P_{ij} = \frac{1}{H} \sum_h \frac{A_{ij} \, |\phi(\mathbf{q}_i^h)^{\top} \phi(\mathbf{k}_j^h)|}
        {\sum_{j'} A_{ij'} \, |\phi(\mathbf{q}_i^h)^{\top} \phi(\mathbf{k}_{j'}^h)|}

    :math:`\mathbf{A}` counts edges, or has absolute edge weights with :obj:`transition="weight"`. If a head gives weight 0 to
    all edges of a node, they get equal probabilities. Training samples such walks in every forward pass, and evaluation uses
    :obj:`seed`. No gradient flows through the probabilities.

    Time and memory are linear in the number of nodes, :math:`O(N n L)` for :math:`n` walks of at most :math:`L` hops. With
    :obj:`dynamic=True`, products of :math:`r` features add :math:`O(E r)` for :math:`E` edges.

    Args:
        dynamic (bool): Let the walks follow the attention. (default: :obj:`False`)

    Example:
        >>> attention = RWGNKAttention(16, heads=4, num_walks=8)
        >>> attention(torch.randn(3, 16), torch.tensor([[0, 1], [1, 0]])).shape
        torch.Size([3, 16])
    """

    mask: RWGNKMask

    def __init__(self, channels: int, heads: int = 1, dynamic: bool = False, **options: Unpack[RWGNKAttentionOptions]) -> None:
        super().__init__(channels, heads, **with_mask(RWGNKMask, heads, options))
        check_choice((False, True), dynamic=dynamic)
        self.dynamic = bool(dynamic)
        settings = self.mask.walk_settings
        self.transition = settings.transition
        if not dynamic:
            return
        if self.mask.resample != 'never':
            raise ArgumentError('resample', f'{self.mask.resample!r} with dynamic=True, which samples new walks', '"never"')
        if SAMPLERS[settings.sampler].repelling:
            given = f'{settings.sampler!r} with dynamic=True, whose walkers share the edges evenly'
            raise ArgumentError('sampler', given, '"iid", "antithetic" and "coupled"')
        self.mask.walk_settings = replace(settings, transition='weight')
        self.mask.resample = 'forward'

    @property
    def weighted(self) -> bool:
        return self.transition == 'weight'

    @property
    def learns_weights(self) -> bool:
        return self.weighted and not self.dynamic

    def __repr__(self) -> str:
        return super().__repr__()[:-1] + (', dynamic=True)' if self.dynamic else ')')

    def _attend(self, generator: torch.Generator | None, x: Tensor, *given: Any) -> Tensor:
        if self.dynamic:
            return self._attend_dynamic(generator, x, *given)
        return super()._attend(generator, x, *given)

    @torch.compiler.disable
    def _attend_dynamic(self, generator: torch.Generator | None, x: Tensor, *given: Any) -> Tensor:
        if is_exporting():
            raise ArgumentError('dynamic', 'True under torch.export', 'False')
        graph = graph_for(self, x, *given)
        return self._attend_under(self.mask_for(x, graph, generator), x, graph if self.looked_at else None)

    def mask_for(self, x: Tensor, graph: Graph, generator: torch.Generator | None = None) -> MaskOperator:
        if not self.dynamic:
            return super().mask_for(x, graph, generator)
        if not graph.segments.is_whole:
            raise ArgumentError('dynamic', 'True on a sharded graph', 'False')
        if self.weighted:
            warn_of_lost_gradient(self.mask, graph)
        transition = unwrapped(self._transition(x, graph))
        if transition.dim() > 1:
            raise ArgumentError('dynamic', 'True under vmap', 'False')
        return self.mask(graph.with_weights(transition), generator)

    @torch.no_grad()
    def _transition(self, x: Tensor, graph: Graph) -> Tensor:
        row, col = graph.row_and_col(self.mask.flow)
        q, k = (self.by_head(lin(x)) for lin in (self.lin_q, self.lin_k))
        q, k = self.feature_map(q, k, graph.segments)
        edge = (graph.weight.abs() if self.weighted else torch.ones_like(graph.weight)).double()
        edge = edge.unsqueeze(1).expand(-1, self.heads)
        # In lower precision, products of tiny or large features would be 0 or infinite.
        products = [(q[row, head].double() * k[col, head].double()).sum(-1) for head in range(self.heads)]
        share = edge * torch.stack(products, dim=1).abs()

        def total(value: Tensor) -> Tensor:
            return value.new_zeros(graph.num_nodes, self.heads).index_add(0, row, value)[row]

        sums = total(share)
        share = torch.where((sums > 0) & sums.isfinite(), share, edge)
        whole = total(share)
        return (share / whole.masked_fill(whole == 0, 1.0)).mean(1).to(graph.weight_dtype)
