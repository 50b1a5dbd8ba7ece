r"""Linear attention whose mask is a learned function of the relative position on a grid."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from pyg_topomask.feature_maps import FeatureMap
from pyg_topomask.masks.toeplitz import ToeplitzMask
from pyg_topomask.nn.masked_linear_attention import MaskedLinearAttention

__all__ = ['ToeplitzAttention']


class ToeplitzAttention(MaskedLinearAttention):
    r"""Linear attention between all nodes of a graph, weighted by their relative position on a line or a grid, from `"From
    block-Toeplitz matrices to differential equations on graphs" <https://arxiv.org/abs/2107.07999>`_ (Sec. 3.2, Lemma 3.3):
    :class:`~pyg_topomask.nn.MaskedLinearAttention` with a :class:`~pyg_topomask.masks.ToeplitzMask`.

    Args:
        channels (int): Size of each input sample; :obj:`-1` is inferred at the first call, and needs :obj:`out_channels`.
        heads (int): The number of heads. (default: :obj:`1`)
        shape_dims (int): The number of dimensions of the grids: with :obj:`1` nodes are on a line in their order, as tokens
            of a sequence; others need :obj:`graph=data` with its :obj:`grid_shape`. (default: :obj:`1`, other than in a
            YAML, which has grids of :obj:`2`)
        kind (str): :obj:`"offset"` or :obj:`"distance"`, see :class:`~pyg_topomask.masks.ToeplitzMask`, as for the arguments up
            to :obj:`positive`. (default: :obj:`"offset"`)
        window (int or sequence of int): The largest offset or distance in the table. (default: :obj:`8`)
        beyond (str): What pairs beyond it have: :obj:`"clip"` or :obj:`"zero"`. (default: :obj:`"clip"`)
        periodic (bool): Join the ends of every dimension. (default: :obj:`False`)
        initial (torch.Tensor or str, optional): The initial table. (default: :obj:`None`, ones)
        positive (bool): Learn the logarithm of the table. (default: :obj:`False`)
        feature_map (str or FeatureMap): See :class:`~pyg_topomask.nn.MaskedLinearAttention`. (default: :obj:`"relu"`)
        dropout (float): Dropout probability of the output. (default: :obj:`0.0`)
        bias (bool): Learn additive biases. (default: :obj:`True`)
        route (str): How the mask is applied. (default: :obj:`"auto"`)
        out_channels (int, optional): Size of each output sample. (default: :obj:`channels`)

    Example:
        >>> import torch
        >>> attention = ToeplitzAttention(16, heads=4)
        >>> attention(torch.randn(5, 16), torch.empty(2, 0, dtype=torch.long), batch=torch.tensor([0, 0, 0, 1, 1])).shape
        torch.Size([5, 16])
    """

    def __init__(
        self,
        channels: int,
        heads: int = 1,
        shape_dims: int = 1,
        kind: str = 'offset',
        window: int | Sequence[int] = 8,
        beyond: str = 'clip',
        periodic: bool = False,
        initial: Tensor | str | None = None,
        positive: bool = False,
        feature_map: str | FeatureMap = 'relu',
        dropout: float = 0.0,
        bias: bool = True,
        route: str = 'auto',
        out_channels: int | None = None,
    ) -> None:
        mask = ToeplitzMask(heads, shape_dims, kind, window, beyond, periodic, initial, positive)
        super().__init__(channels, heads, mask, feature_map, dropout, bias, route, out_channels)
