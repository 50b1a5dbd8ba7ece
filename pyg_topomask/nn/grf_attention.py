r"""Linear attention masked by graph random features."""

from __future__ import annotations

from typing import Any

from pyg_topomask.masks import GRFMask
from pyg_topomask.nn.masked_linear_attention import MaskedLinearAttention
from pyg_topomask.nn.multi_head import with_mask
from pyg_topomask.options import options_of

__all__ = ['GRFAttention']


@options_of(GRFMask, MaskedLinearAttention, without=['mask'])
class GRFAttention(MaskedLinearAttention):
    r"""Linear attention under a learnable function of the weighted adjacency matrix, estimated by random walks, from `"Linear
    Transformer Topological Masking with Graph Random Features" <https://arxiv.org/abs/2410.03462>`_ (Algorithm 1):
    :class:`~pyg_topomask.nn.MaskedLinearAttention` with a :class:`~pyg_topomask.masks.GRFMask`,

    .. math::
        \mathbf{y}_i = \mathbf{W}_o \frac{\sum_j \hat{M}_{ij} \, \phi(\mathbf{q}_i)^{\top} \phi(\mathbf{k}_j) \, \mathbf{v}_j}
        {\sum_j \hat{M}_{ij} \, \phi(\mathbf{q}_i)^{\top} \phi(\mathbf{k}_j)}, \qquad
        \hat{\mathbf{M}} = \hat{\Phi} \hat{\Psi}^{\top}, \qquad \mathbb{E} \, \hat{\Phi} = \sum_{l=0}^{L} f_l \mathbf{W}^l

    The layer uses walks that :class:`~pyg_topomask.transforms.AddGraphRandomFeatures` stored if it is given
    :obj:`graph=Graph.from_data(data)`. Otherwise it walks itself. :class:`~pyg_topomask.masks.GRFMask` says which options must
    agree with those of the stored walks.

    Args:

    Raises:
        ValueError: If an argument is outside its range, or arguments exclude each other.

    Example:
        >>> import torch
        >>> attention = GRFAttention(16, heads=4, num_walks=8)
        >>> attention(torch.randn(3, 16), torch.tensor([[0, 1], [1, 0]])).shape
        torch.Size([3, 16])
    """

    mask: GRFMask

    def __init__(self, channels: int, heads: int = 1, **options: Any) -> None:
        super().__init__(channels, heads, **with_mask(GRFMask, heads, options))
