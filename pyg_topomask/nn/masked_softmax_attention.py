r"""Softmax attention over the entries of a sparse mask."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from pyg_topomask.graphs.graph import Graph
from pyg_topomask.masks import GRFMask, Mask
from pyg_topomask.nn.explicit_attention import SparseMaskAttention
from pyg_topomask.nn.inputs import with_mask
from pyg_topomask.operators.entries import Entries
from pyg_topomask.ops import masked_softmax_attention
from pyg_topomask.ops.masked_softmax_attention import attend_softmax
from pyg_topomask.utils.checks import check_probability
from pyg_topomask.utils.options import described_by, options_of


@described_by(SparseMaskAttention)
class MaskedSoftmaxAttention(SparseMaskAttention):
    r"""Multi-head softmax attention with the logarithm of a sparse mask as bias, from `"Linear Transformer Topological Masking
    with Graph Random Features" <https://arxiv.org/abs/2410.03462>`_ (Sec. 2, App. C.4):

    .. math::
        \mathbf{x}'_i = \mathbf{W}_o \sum_j \alpha_{ij} \mathbf{v}_j, \qquad
        \alpha_{ij} = \operatorname{softmax}_j (\mathbf{q}_i^{\top} \mathbf{k}_j / \sqrt{d} + \log M_{ij})

    Time and memory are linear in the number of entries of the mask.

    Args:
        mask (Mask): A sparse mask with nonnegative entries, or a sum or
            :class:`~pyg_topomask.masks.MultiHeadMask` of such masks. Zero entries get no attention and no gradient.
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
    ) -> None:
        super().__init__(channels, heads, mask, dropout, bias, out_channels)
        check_probability(attention_dropout=attention_dropout)
        self.attention_dropout = attention_dropout

    def attend(self, q: Tensor, k: Tensor, v: Tensor, graph: Graph, generator: torch.Generator | None) -> Tensor:
        dropout = self.attention_dropout if self.training else 0.0
        return masked_softmax_attention(q, k, v, self.mask(graph, generator), dropout)

    def alpha(self, q: Tensor, k: Tensor, v: Tensor, graph: Graph, entries: Entries) -> Tensor:
        _, alpha = attend_softmax(q, k, v[..., :0], entries)  # no output: the values are propagated later
        return torch.nn.functional.dropout(alpha, self.attention_dropout, self.training)


@options_of(GRFMask, MaskedSoftmaxAttention, without=['mask', 'positive', 'stitch'])
class GRFSoftmaxAttention(MaskedSoftmaxAttention):
    r"""Softmax attention masked by graph random features, from `"Linear Transformer Topological Masking with Graph Random
    Features" <https://arxiv.org/abs/2410.03462>`_ (App. C.4). A node attends to the nodes whose walks meet its walks. With
    :obj:`asymmetric=True`, it attends to the nodes that its walks visit. The layer learns the logarithm of the modulation,
    so that the mask stays positive. Edge weights must be positive.

    .. math::
        \mathbf{y}_i = \mathbf{W}_o \sum_j \alpha_{ij} \mathbf{v}_j, \qquad \alpha_{ij} = \operatorname{softmax}_{j}
        \left( \mathbf{q}_i^{\top} \mathbf{k}_j / \sqrt{d} + \log \hat{M}_{ij} \right)

    Time and memory are :math:`O(nnz)` for :math:`nnz` entries of the mask.

    Raises:
        ValueError: If an entry of the mask is negative.

    Example:
        >>> attention = GRFSoftmaxAttention(16, heads=4)
        >>> attention(torch.randn(3, 16), torch.tensor([[0, 1], [1, 0]])).shape
        torch.Size([3, 16])
    """

    mask: GRFMask

    def __init__(self, channels: int, heads: int = 1, **options: Any) -> None:
        super().__init__(channels, heads, **with_mask(GRFMask, heads, options, positive=True))
