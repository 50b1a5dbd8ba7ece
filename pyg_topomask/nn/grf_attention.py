r"""Linear attention masked by graph random features."""

from __future__ import annotations

from typing import Any

from pyg_topomask.masks import GRFMask
from pyg_topomask.nn.masked_linear_attention import MaskedLinearAttention
from pyg_topomask.nn.with_mask import with_mask
from pyg_topomask.utils.options import options_of


@options_of(GRFMask, MaskedLinearAttention, without=['mask'])
class GRFAttention(MaskedLinearAttention):
    r"""Linear attention masked by a learnable function of the weighted adjacency matrix, estimated by random walks, from
    `"Linear Transformer Topological Masking with Graph Random Features" <https://arxiv.org/abs/2410.03462>`_ (Algorithm 1).
    The layer is :class:`~pyg_topomask.nn.MaskedLinearAttention` with a :class:`~pyg_topomask.masks.GRFMask`:

    .. math::
        \mathbf{y}_i = \mathbf{W}_o \frac{\sum_j \hat{M}_{ij} \, \phi(\mathbf{q}_i)^{\top} \phi(\mathbf{k}_j) \, \mathbf{v}_j}
        {\sum_j \hat{M}_{ij} \, \phi(\mathbf{q}_i)^{\top} \phi(\mathbf{k}_j)}, \qquad
        \hat{\mathbf{M}} = \hat{\Phi} \hat{\Psi}^{\top}, \qquad \mathbb{E} \, \hat{\Phi} = \sum_{l=0}^{L} f_l \mathbf{W}^l

    With :obj:`graph=Graph.from_data(data)`, the layer uses the walks stored by
    :class:`~pyg_topomask.transforms.AddGraphRandomFeatures`. Otherwise, it samples the walks.
    :class:`~pyg_topomask.masks.GRFMask` lists the options that must agree with those of stored walks.

    Time and memory are :math:`O(N n L)` for :math:`n` walks of at most :math:`L` hops, for any number of edges.

    Args:

    Raises:
        ValueError: If an argument is outside its range, or arguments conflict.

    Shapes:
        - **input:** node features :math:`(|\mathcal{V}|, F)`, edge indices :math:`(2, |\mathcal{E}|)`, edge weights
          :math:`(|\mathcal{E}|)` *(optional)*, batch vector :math:`(|\mathcal{V}|)` *(optional)*
        - **output:** node features :math:`(|\mathcal{V}|, F_{out})`

    Example:
        >>> import torch
        >>> attention = GRFAttention(16, heads=4, num_walks=8)
        >>> attention(torch.randn(3, 16), torch.tensor([[0, 1], [1, 0]])).shape
        torch.Size([3, 16])
    """

    mask: GRFMask

    def __init__(self, channels: int, heads: int = 1, **options: Any) -> None:
        super().__init__(channels, heads, **with_mask(GRFMask, heads, options))
