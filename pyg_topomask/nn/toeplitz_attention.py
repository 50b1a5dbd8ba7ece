r"""Linear attention masked by relative positions on a grid."""

from __future__ import annotations

from typing import Any

from pyg_topomask.masks.toeplitz import ToeplitzMask
from pyg_topomask.nn.masked_linear_attention import MaskedLinearAttention
from pyg_topomask.nn.with_mask import with_mask
from pyg_topomask.utils.options import options_of


@options_of(ToeplitzMask, MaskedLinearAttention, without=['mask'])
class ToeplitzAttention(MaskedLinearAttention):
    r"""Linear attention between all nodes of a graph, weighted by their relative position on a line or a grid, from `"From
    block-Toeplitz matrices to differential equations on graphs" <https://arxiv.org/abs/2107.07999>`_ (Sec. 3.2, Lemma 3.3).
    The layer is :class:`~pyg_topomask.nn.MaskedLinearAttention` with a :class:`~pyg_topomask.masks.ToeplitzMask`:

    .. math::
        \mathbf{y}_i = \mathbf{W}_o \frac{\sum_j M_{ij} \, \phi(\mathbf{q}_i)^{\top} \phi(\mathbf{k}_j) \, \mathbf{v}_j}
        {\sum_j M_{ij} \, \phi(\mathbf{q}_i)^{\top} \phi(\mathbf{k}_j)}, \qquad M_{ij} = \xi(\mathbf{p}_i - \mathbf{p}_j)

    Time is :math:`O(N \log N)`, and memory is :math:`O(N)`.

    Args:
        shape_dims (int): The number of dimensions of the grids. With :obj:`1`, nodes are on a line in their order, like the
            tokens of a sequence. Other grids need :obj:`graph=data` with :obj:`data.grid_shape`. (default: :obj:`1`, and
            :obj:`2` in a YAML)

    Raises:
        ValueError: If an argument is outside its range, or the grid shape is missing from the data.

    Shapes:
        - **input:** node features :math:`(|\mathcal{V}|, F)`, edge indices :math:`(2, |\mathcal{E}|)`, edge weights
          :math:`(|\mathcal{E}|)` *(optional)*, batch vector :math:`(|\mathcal{V}|)` *(optional)*
        - **output:** node features :math:`(|\mathcal{V}|, F_{out})`

    Example:
        >>> import torch
        >>> attention = ToeplitzAttention(16, heads=4)
        >>> attention(torch.randn(5, 16), torch.empty(2, 0, dtype=torch.long), batch=torch.tensor([0, 0, 0, 1, 1])).shape
        torch.Size([5, 16])
    """

    mask: ToeplitzMask

    def __init__(self, channels: int, heads: int = 1, shape_dims: int = 1, **options: Any) -> None:
        super().__init__(channels, heads, **with_mask(ToeplitzMask, heads, options, shape_dims=shape_dims))
