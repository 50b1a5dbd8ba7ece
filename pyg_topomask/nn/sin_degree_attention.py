r"""Linear attention masked by node degrees."""

from __future__ import annotations

from typing import Any

from pyg_topomask.feature_maps import FeatureMap
from pyg_topomask.masks.sin_degree import SinDegreeMask
from pyg_topomask.nn.masked_linear_attention import MaskedLinearAttention
from pyg_topomask.nn.with_mask import with_mask
from pyg_topomask.utils.options import options_of


@options_of(SinDegreeMask, MaskedLinearAttention, without=['mask'])
class SinDegreeAttention(MaskedLinearAttention):
    r"""Linear attention between all nodes of a graph, weighted by their learned degree centralities, from `"Masked Graph
    Transformer for Large-Scale Recommendation" <https://doi.org/10.1145/3626772.3657971>`_ (Eq. 12). The layer is
    :class:`~pyg_topomask.nn.MaskedLinearAttention` with a :class:`~pyg_topomask.masks.SinDegreeMask`:

    .. math::
        \mathbf{y}_i = \mathbf{W}_o \frac{\sum_j M_{ij} \, \phi(\mathbf{q}_i)^{\top} \phi(\mathbf{k}_j) \, \mathbf{v}_j}
        {\sum_j M_{ij} \, \phi(\mathbf{q}_i)^{\top} \phi(\mathbf{k}_j)}, \qquad
        M_{ij} = \sin \left( \tfrac{\pi}{4} (z_i + z_j) \right)

    Time and memory are :math:`O(N)`, twice as much as without the mask.

    Args:
        feature_map (str or FeatureMap): See :class:`~pyg_topomask.nn.MaskedLinearAttention`; the default is the paper's.
            (default: :obj:`"simplex"`)

    Raises:
        ValueError: If an argument is outside its range, or the degrees are missing from the data.

    Shapes:
        - **input:** node features :math:`(|\mathcal{V}|, F)`, edge indices :math:`(2, |\mathcal{E}|)`, edge weights
          :math:`(|\mathcal{E}|)` *(optional)*, batch vector :math:`(|\mathcal{V}|)` *(optional)*
        - **output:** node features :math:`(|\mathcal{V}|, F_{out})`

    Example:
        >>> import torch
        >>> attention = SinDegreeAttention(16, heads=4)
        >>> attention(torch.randn(3, 16), torch.tensor([[0, 1], [1, 0]])).shape
        torch.Size([3, 16])
    """

    mask: SinDegreeMask

    def __init__(self, channels: int, heads: int = 1, *, feature_map: str | FeatureMap = 'simplex', **options: Any) -> None:
        super().__init__(channels, heads, feature_map=feature_map, **with_mask(SinDegreeMask, heads, options))
