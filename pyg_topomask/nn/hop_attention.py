r"""Linear attention weighted by the shortest-path distance."""

from __future__ import annotations

from typing import Any

from pyg_topomask.masks.hop import HopMask
from pyg_topomask.nn.masked_linear_attention import MaskedLinearAttention
from pyg_topomask.nn.with_mask import with_mask
from pyg_topomask.utils.options import options_of


@options_of(HopMask, MaskedLinearAttention, without=['mask'])
class HopAttention(MaskedLinearAttention):
    r"""Linear attention to the nodes within :math:`K` edges, weighted by a learned function of the shortest-path distance
    :math:`d(i, j)`. The layer is :class:`~pyg_topomask.nn.MaskedLinearAttention` with a :class:`~pyg_topomask.masks.HopMask`:

    .. math::
        \mathbf{y}_i = \mathbf{W}_o \frac{\sum_{d(i, j) \le K} f_{d(i, j)} \, \phi(\mathbf{q}_i)^{\top} \phi(\mathbf{k}_j) \,
        \mathbf{v}_j} {\sum_{d(i, j) \le K} f_{d(i, j)} \, \phi(\mathbf{q}_i)^{\top} \phi(\mathbf{k}_j)}

    Time and memory are :math:`O(\text{pairs})` for the pairs of nodes within :math:`K` edges.

    Try the feature map :obj:`"square"` too: it was better than ReLU on two of five tasks, and not distinguishable on three
    (:obj:`benchmarks/results/accuracy_variants.md`).

    Args:

    Raises:
        ValueError: If an argument is outside its range, or more than :math:`2^{26}` pairs of nodes are within :math:`K` edges.

    Shapes:
        - **input:** node features :math:`(|\mathcal{V}|, F)`, edge indices :math:`(2, |\mathcal{E}|)`, edge weights
          :math:`(|\mathcal{E}|)` *(optional)*, batch vector :math:`(|\mathcal{V}|)` *(optional)*
        - **output:** node features :math:`(|\mathcal{V}|, F_{out})`

    Example:
        >>> import torch
        >>> attention = HopAttention(16, heads=4, max_hops=2)
        >>> attention(torch.randn(3, 16), torch.tensor([[0, 1], [1, 0]])).shape
        torch.Size([3, 16])
    """

    mask: HopMask

    def __init__(self, channels: int, heads: int = 1, **options: Any) -> None:
        super().__init__(channels, heads, **with_mask(HopMask, heads, options))
