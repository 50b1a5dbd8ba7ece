r"""Linear attention over the nodes that random walks visit."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from pyg_topomask.feature_maps import FeatureMap
from pyg_topomask.graphs.graph import Graph
from pyg_topomask.masks import GRFMask
from pyg_topomask.nn.explicit_attention import SparseMaskAttention
from pyg_topomask.nn.inputs import with_mask
from pyg_topomask.nn.masked_linear_attention import resolve_feature_map
from pyg_topomask.operators.entries import Entries
from pyg_topomask.operators.sparse_matmul import sddmm
from pyg_topomask.ops import masked_linear_attention
from pyg_topomask.ops.normalize import quotient
from pyg_topomask.utils.options import options_of


@options_of(GRFMask, SparseMaskAttention, without=['mask', 'asymmetric', 'independent_ensembles', 'stitch'])
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

    def __init__(self, channels: int, heads: int = 1, *, feature_map: str | FeatureMap = 'relu', **options: Any) -> None:
        super().__init__(channels, heads, **with_mask(GRFMask, heads, options, asymmetric=True))
        self.feature_map = resolve_feature_map(feature_map, self.out_channels // heads)

    def reset_parameters(self) -> None:
        super().reset_parameters()
        self.feature_map.reset_parameters()

    def attend(self, q: Tensor, k: Tensor, v: Tensor, graph: Graph, generator: torch.Generator | None) -> Tensor:
        q, k = self.feature_map(q, k, graph.segments)
        return masked_linear_attention(q, k, v, self.mask(graph, generator), route='edges')

    def alpha(self, q: Tensor, k: Tensor, v: Tensor, graph: Graph, entries: Entries) -> Tensor:
        q, k = self.feature_map(q, k, graph.segments)
        dtype = torch.promote_types(torch.promote_types(q.dtype, v.dtype), torch.float32)
        weight = sddmm(entries.pattern, q.to(dtype), k.to(dtype)) * entries.value.to(dtype)
        row = entries.pattern.row.long()
        total = weight.new_zeros(self.heads, graph.num_nodes).index_add(1, row, weight)
        size = weight.detach().new_zeros(self.heads, graph.num_nodes).index_add(1, row, weight.detach().abs())
        return quotient(weight, total[:, row], size[:, row])
