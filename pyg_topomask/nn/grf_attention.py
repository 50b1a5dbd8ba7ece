r"""Linear attention masked by graph random features."""

from __future__ import annotations

from torch import Tensor

from pyg_topomask.feature_maps import FeatureMap
from pyg_topomask.masks import GRFMask
from pyg_topomask.nn.masked_linear_attention import MaskedLinearAttention
from pyg_topomask.walks import WalkLength

__all__ = ['GRFAttention']


class GRFAttention(MaskedLinearAttention):
    r"""Linear attention under a learnable function of the weighted adjacency matrix, estimated by random walks, from `"Linear
    Transformer Topological Masking with Graph Random Features" <https://arxiv.org/abs/2410.03462>`_ (Algorithm 1):
    :class:`~pyg_topomask.nn.MaskedLinearAttention` with a :class:`~pyg_topomask.masks.GRFMask`.

    Walks stored by :class:`~pyg_topomask.transforms.AddGraphRandomFeatures` are used when the layer is given
    :obj:`graph=Graph.from_data(data)`, whatever :obj:`num_walks`, :obj:`sampler` and :obj:`seed` say here, and if visits are
    weighed (:obj:`importance=True`) :obj:`p_halt`, :obj:`walk_length` and :obj:`transition`; otherwise the layer walks itself.

    Args:
        channels (int): Size of each input sample; :obj:`-1` is inferred at the first call, and needs :obj:`out_channels`.
        heads (int): The number of heads. (default: :obj:`1`)
        num_walks (int): Walks per node and ensemble. (default: :obj:`4`)
        p_halt (float): The probability that a walk halts before a hop; :obj:`0` for walks of :obj:`max_walk_length` hops.
            (default: :obj:`0.5`)
        max_walk_length (int): The largest number of hops. (default: :obj:`4`)
        modulation (torch.Tensor or str, optional): The initial :math:`f`, or a kernel. (default: :obj:`None`)
        independent_ensembles (bool): Walk twice, for queries and for keys. (default: :obj:`False`)
        asymmetric (bool or str): :obj:`True` for keys without walks, :obj:`"pairs"` for a modulation of their own.
            (default: :obj:`False`)
        sampler (str): How walkers depend on each other. (default: :obj:`"iid"`)
        transition (str): Which hops walkers prefer. (default: :obj:`"uniform"`)
        normalization (str, optional): How :math:`\mathbf{W}` is made of the edge weights. (default: :obj:`"sym"`)
        resample (str): :obj:`"never"` or :obj:`"forward"`. (default: :obj:`"never"`)
        seed (int): The seed of walks that are not drawn anew. (default: :obj:`0`)
        walk_length (WalkLength or str, optional): The distribution of lengths in place of the geometric one.
            (default: :obj:`None`)
        importance (bool): Weigh visits by the inverse of their probabilities. (default: :obj:`True`)
        share_modulation (bool): Learn one modulation for all heads. (default: :obj:`False`)
        positive (bool, optional): Learn the logarithm of the modulation, so that no entry of the mask turns negative in
            training; :obj:`None` where all initial numbers are above 0. (default: :obj:`None`)
        feature_map (str or FeatureMap): See :class:`~pyg_topomask.nn.MaskedLinearAttention`. (default: :obj:`"relu"`)
        dropout (float): Dropout probability of the output. (default: :obj:`0.0`)
        bias (bool): Learn additive biases. (default: :obj:`True`)
        route (str): How the mask is applied. (default: :obj:`"auto"`)
        out_channels (int, optional): Size of each output sample. (default: :obj:`channels`)

    Example:
        >>> import torch
        >>> attention = GRFAttention(16, heads=4, num_walks=8)
        >>> attention(torch.randn(3, 16), torch.tensor([[0, 1], [1, 0]])).shape
        torch.Size([3, 16])
    """

    def __init__(
        self,
        channels: int,
        heads: int = 1,
        num_walks: int = 4,
        p_halt: float = 0.5,
        max_walk_length: int = 4,
        modulation: Tensor | str | None = None,
        independent_ensembles: bool = False,
        asymmetric: bool | str = False,
        sampler: str = 'iid',
        transition: str = 'uniform',
        normalization: str | None = 'sym',
        resample: str = 'never',
        seed: int = 0,
        walk_length: WalkLength | str | None = None,
        importance: bool = True,
        share_modulation: bool = False,
        positive: bool | None = None,
        feature_map: str | FeatureMap = 'relu',
        dropout: float = 0.0,
        bias: bool = True,
        route: str = 'auto',
        out_channels: int | None = None,
    ) -> None:
        mask = GRFMask(
            heads,
            num_walks=num_walks,
            p_halt=p_halt,
            max_walk_length=max_walk_length,
            modulation=modulation,
            independent_ensembles=independent_ensembles,
            asymmetric=asymmetric,
            sampler=sampler,
            transition=transition,
            normalization=normalization,
            resample=resample,
            seed=seed,
            walk_length=walk_length,
            importance=importance,
            share_modulation=share_modulation,
            positive=positive,
        )
        super().__init__(channels, heads, mask, feature_map, dropout, bias, route, out_channels)
