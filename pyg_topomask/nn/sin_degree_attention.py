r"""Linear attention masked by the degrees of both ends."""

from __future__ import annotations

from pyg_topomask.feature_maps import FeatureMap
from pyg_topomask.masks.sin_degree import SinDegreeMask
from pyg_topomask.nn.masked_linear_attention import MaskedLinearAttention

__all__ = ['SinDegreeAttention']


class SinDegreeAttention(MaskedLinearAttention):
    r"""Linear attention between all nodes of a graph, reweighed by their learned degree centralities, from `"Masked Graph
    Transformer for Large-Scale Recommendation" <https://doi.org/10.1145/3626772.3657971>`_ (Eq. 12):
    :class:`~pyg_topomask.nn.MaskedLinearAttention` with a :class:`~pyg_topomask.masks.SinDegreeMask`. It costs twice as much
    as without a mask.

    Args:
        channels (int): Size of each input sample; :obj:`-1` is inferred at the first call, and needs :obj:`out_channels`.
        heads (int): The number of heads. (default: :obj:`1`)
        max_degree (int): The largest degree with an embedding of its own. (default: :obj:`512`)
        embedding_dim (int): Size of the embeddings of degrees. (default: :obj:`16`)
        flow (str, optional): Which edges of a node count: with :obj:`"source_to_target"` those that point at it, with
            :obj:`"target_to_source"` those that leave it, and with :obj:`None` both. (default: :obj:`"source_to_target"`)
        degree_attr (str, optional): The node attribute of the data that holds degrees, where the layer is given
            :obj:`graph=Graph.from_data(data)`. (default: :obj:`None`)
        feature_map (str or FeatureMap): See :class:`~pyg_topomask.nn.MaskedLinearAttention`; the default is the paper's.
            (default: :obj:`"simplex"`)
        dropout (float): Dropout probability of the output. (default: :obj:`0.0`)
        bias (bool): Learn additive biases. (default: :obj:`True`)
        route (str): How the mask is applied. (default: :obj:`"auto"`)
        out_channels (int, optional): Size of each output sample. (default: :obj:`channels`)

    Example:
        >>> import torch
        >>> attention = SinDegreeAttention(16, heads=4)
        >>> attention(torch.randn(3, 16), torch.tensor([[0, 1], [1, 0]])).shape
        torch.Size([3, 16])
    """

    def __init__(
        self,
        channels: int,
        heads: int = 1,
        max_degree: int = 512,
        embedding_dim: int = 16,
        flow: str | None = 'source_to_target',
        degree_attr: str | None = None,
        feature_map: str | FeatureMap = 'simplex',
        dropout: float = 0.0,
        bias: bool = True,
        route: str = 'auto',
        out_channels: int | None = None,
    ) -> None:
        mask = SinDegreeMask(heads, max_degree, embedding_dim, flow, degree_attr)
        super().__init__(channels, heads, mask, feature_map, dropout, bias, route, out_channels)
