r"""Attention over the entries of a sparse mask, which can return its coefficients."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from pyg_topomask.feature_maps.feature_map import FeatureMap
from pyg_topomask.graphs.graph import Graph
from pyg_topomask.masks import GRFMask, Mask
from pyg_topomask.nn.edge_terms import TermsOfPairs, attention_with_edges_on
from pyg_topomask.nn.explicit_attention import ExplicitAttention
from pyg_topomask.nn.inputs import fit_mask, flow_under, with_mask
from pyg_topomask.nn.masked_linear_attention import on_near_graph, resolve_feature_map
from pyg_topomask.operators.base import MaskOperator
from pyg_topomask.operators.forms import Entries
from pyg_topomask.ops import masked_linear_attention, masked_softmax_attention
from pyg_topomask.ops.routes.edges import linear_coefficients
from pyg_topomask.ops.softmax_attention import entries_of_pairs
from pyg_topomask.ops.softmax_entries import attend_softmax
from pyg_topomask.utils.checks import check_probability
from pyg_topomask.utils.options import described_by, options_of

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from pyg_topomask.nn.options import AsymmetricGRFAttentionOptions, GRFSoftmaxAttentionOptions


@described_by(ExplicitAttention)
class SparseMaskAttention(ExplicitAttention):
    r"""Base class of multi-head attention over the entries of a sparse mask. Node :math:`i` attends to the nodes :math:`j` with
    an entry :math:`M_{ij}`.

    Args:
        mask (Mask): A sparse mask with :obj:`heads` heads, or one head that all share. One made without :obj:`heads` gets those
            of the layer.
    """

    def __init__(
        self,
        channels: int,
        heads: int,
        mask: Mask,
        dropout: float = 0.0,
        bias: bool = True,
        out_channels: int | None = None,
        edge_dim: int | None = None,
    ) -> None:
        super().__init__(channels, heads, dropout, bias, out_channels, flow=flow_under(mask), edge_dim=edge_dim)
        fit_mask(mask, heads)
        self.mask = mask

    def reset_parameters(self) -> None:
        super().reset_parameters()
        self.mask.reset_parameters()

    @abstractmethod
    def alpha(self, q: Tensor, k: Tensor, v: Tensor, graph: Graph, entries: Entries) -> Tensor:
        r"""Returns the coefficients :math:`\alpha_{ij}` at the entries of the mask, :obj:`[H, nnz]`."""

    def coefficients(
        self,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        graph: Graph,
        generator: torch.Generator | None,
        terms: TermsOfPairs | None = None,
    ) -> tuple[Tensor, Tensor]:
        entries = entries_of_pairs(self.mask(graph, generator), return_attention_weights=True)
        entries = entries if terms is None else terms.times(entries)[0]
        return entries.pairs, self.alpha(q, k, v, graph, entries).t()

    def __repr__(self) -> str:
        return f'{super().__repr__()[:-1]}, mask={self.mask})'


@described_by(SparseMaskAttention)
class MaskedSoftmaxAttention(SparseMaskAttention):
    r"""Multi-head softmax attention with the logarithm of a mask as bias, from `"From block-Toeplitz matrices to differential
    equations on graphs" <https://arxiv.org/abs/2107.07999>`_ (Eq. 1) and `"Linear Transformer Topological Masking with Graph
    Random Features" <https://arxiv.org/abs/2410.03462>`_ (Sec. 2, App. C.4):

    .. math::
        \mathbf{x}'_i = \mathbf{W}_o \sum_j \alpha_{ij} \mathbf{v}_j, \qquad
        \alpha_{ij} = \operatorname{softmax}_j (\mathbf{q}_i^{\top} \mathbf{k}_j / \sqrt{d} + \log M_{ij})

    Time and memory are linear in the number of entries of a sparse mask. Under any other mask, all pairs of nodes of a graph
    are compared, in graphs of up to 32,768 nodes. Time is then quadratic in the size of a graph, and memory is linear. With
    :obj:`edge_dim`, memory is quadratic too.

    Args:
        mask (Mask): A mask with nonnegative entries. Zero entries get no attention and no gradient. Masks that learn numbers of
            either sign need :obj:`positive=True`.
        attention_dropout (float): Dropout probability of the coefficients. (default: :obj:`0.0`)

    Example:
        >>> from pyg_topomask.masks import AdjacencyMask
        >>> attention = MaskedSoftmaxAttention(16, heads=4, mask=AdjacencyMask())
        >>> attention(torch.randn(3, 16), torch.tensor([[0, 1], [1, 0]])).shape
        torch.Size([3, 16])
    """

    def __init__(
        self,
        channels: int,
        heads: int,
        mask: Mask,
        dropout: float = 0.0,
        bias: bool = True,
        out_channels: int | None = None,
        attention_dropout: float = 0.0,
        edge_dim: int | None = None,
    ) -> None:
        super().__init__(channels, heads, mask, dropout, bias, out_channels, edge_dim)
        check_probability(attention_dropout=attention_dropout)
        self.attention_dropout = attention_dropout

    @property
    def reads_edges(self) -> bool:
        return super().reads_edges or self.edge_terms is not None

    def attend(
        self, q: Tensor, k: Tensor, v: Tensor, graph: Graph, generator: torch.Generator | None, edge_attr: Tensor | None = None
    ) -> Tensor:
        dropout, near = self.attention_dropout if self.training else 0.0, graph.near(self.mask, generator)

        def attend(mask: MaskOperator, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            if self.edge_terms is None or edge_attr is None:
                return masked_softmax_attention(q, k, v, mask, dropout)
            given = q, k, v, mask, dropout, edge_attr
            return attention_with_edges_on(graph if near is None else near, self.edge_terms, self.flow, *given)

        return on_near_graph(graph, self.mask, generator, attend, q, k, v)

    def alpha(self, q: Tensor, k: Tensor, v: Tensor, graph: Graph, entries: Entries) -> Tensor:
        dropout = self.attention_dropout if self.training else 0.0
        return attend_softmax(q, k, v[..., :0], entries, dropout).shown  # no output: the values are propagated later


@options_of(GRFMask, MaskedSoftmaxAttention, without=['mask', 'positive', 'stitch'])
class GRFSoftmaxAttention(MaskedSoftmaxAttention):
    r"""Softmax attention masked by graph random features, from `"Linear Transformer Topological Masking with Graph Random
    Features" <https://arxiv.org/abs/2410.03462>`_ (App. C.4). A node attends to the nodes whose walks meet its walks. With
    :obj:`asymmetric=True`, it attends to the nodes that its walks visit. The layer learns the logarithm of the modulation,
    so that the mask stays positive. Edge weights must be positive. The layer is
    :class:`~pyg_topomask.nn.MaskedSoftmaxAttention` with a :class:`~pyg_topomask.masks.GRFMask`:

    .. math::
        \alpha_{ij} = \operatorname{softmax}_j ( \mathbf{q}_i^{\top} \mathbf{k}_j / \sqrt{d} + \log \hat{M}_{ij} )

    Time and memory are :math:`O(nnz)` for :math:`nnz` entries of the mask.

    Raises:
        ValueError: If an entry of the mask is negative.

    Example:
        >>> attention = GRFSoftmaxAttention(16, heads=4)
        >>> attention(torch.randn(3, 16), torch.tensor([[0, 1], [1, 0]])).shape
        torch.Size([3, 16])
    """

    mask: GRFMask

    def __init__(self, channels: int, heads: int = 1, **options: Unpack[GRFSoftmaxAttentionOptions]) -> None:
        super().__init__(channels, heads, **with_mask(GRFMask, heads, options, positive=True))


@options_of(GRFMask, SparseMaskAttention, without=['mask', 'edge_dim', 'asymmetric', 'independent_ensembles', 'stitch'])
class AsymmetricGRFAttention(SparseMaskAttention):
    r"""Linear attention of each node to the nodes that its random walks visit, from `"Linear Transformer Topological Masking
    with Graph Random Features" <https://arxiv.org/abs/2410.03462>`_ (App. D, Algorithm 2). The mask is that of
    :class:`~pyg_topomask.masks.GRFMask` with :obj:`asymmetric=True`. The layer can return its coefficients :math:`\alpha`:

    .. math::
        \mathbf{y}_i = \mathbf{W}_o \sum_j \alpha_{ij} \mathbf{v}_j, \qquad
        \alpha_{ij} = \frac{\hat{\Phi}_{ij} \, \phi(\mathbf{q}_i)^{\top} \phi(\mathbf{k}_j)}
        {\sum_{j'} \hat{\Phi}_{ij'} \, \phi(\mathbf{q}_i)^{\top} \phi(\mathbf{k}_{j'})}, \qquad
        \mathbb{E} \, \hat{\Phi} = \sum_{l=0}^{L} f_l \mathbf{W}^l

    The layer omits the factor :math:`n` in line 11 of the algorithm, because it cancels.

    Time and memory are :math:`O(N n L)` for :math:`n` walks of at most :math:`L` hops.

    Args:
        feature_map (str or FeatureMap): See :class:`~pyg_topomask.nn.MaskedLinearAttention`. (default: :obj:`"relu"`)

    Example:
        >>> attention = AsymmetricGRFAttention(16, heads=4)
        >>> attention(torch.randn(3, 16), torch.tensor([[0, 1], [1, 0]])).shape
        torch.Size([3, 16])
    """

    mask: GRFMask

    def __init__(
        self,
        channels: int,
        heads: int = 1,
        *,
        feature_map: str | FeatureMap = 'relu',
        **options: Unpack[AsymmetricGRFAttentionOptions],
    ) -> None:
        super().__init__(channels, heads, **with_mask(GRFMask, heads, options, asymmetric=True))
        self.feature_map = resolve_feature_map(feature_map, self.out_channels // heads)

    def reset_parameters(self) -> None:
        super().reset_parameters()
        self.feature_map.reset_parameters()

    def attend(
        self, q: Tensor, k: Tensor, v: Tensor, graph: Graph, generator: torch.Generator | None, edge_attr: Tensor | None = None
    ) -> Tensor:
        q, k = self.feature_map(q, k, graph.segments)
        return on_near_graph(
            graph, self.mask, generator, lambda mask, q, k, v: masked_linear_attention(q, k, v, mask, 'edges'), q, k, v
        )

    def alpha(self, q: Tensor, k: Tensor, v: Tensor, graph: Graph, entries: Entries) -> Tensor:
        q, k = self.feature_map(q, k, graph.segments)
        return linear_coefficients(q, k, entries)
