r"""Linear attention over the nodes that random walks visit."""

from __future__ import annotations

import torch
from torch import Tensor

from pyg_topomask.capabilities import Entries
from pyg_topomask.feature_maps import FeatureMap
from pyg_topomask.graph import Graph
from pyg_topomask.masks import GRFMask
from pyg_topomask.nn.explicit_attention import SparseMaskAttention
from pyg_topomask.nn.masked_linear_attention import resolve_feature_map
from pyg_topomask.ops import masked_linear_attention, sddmm
from pyg_topomask.ops.normalize import quotient
from pyg_topomask.walks import WalkLength

__all__ = ['AsymmetricGRFAttention']


class AsymmetricGRFAttention(SparseMaskAttention):
    r"""Linear attention of every node to the nodes that its random walks visit, from `"Linear Transformer Topological Masking
    with Graph Random Features" <https://arxiv.org/abs/2410.03462>`_ (App. D, Algorithm 2, without the factor :math:`n` of
    line 11, which cancels): :class:`~pyg_topomask.masks.GRFMask` with :obj:`asymmetric=True`, with coefficients that can be
    looked at.

    Args:
        channels (int): Size of each input sample; :obj:`-1` is inferred at the first call, and needs :obj:`out_channels`.
        heads (int): The number of heads. (default: :obj:`1`)
        num_walks (int): Walks per node. (default: :obj:`4`)
        p_halt (float): The probability that a walk halts before a hop; :obj:`0` for walks of :obj:`max_walk_length` hops.
            (default: :obj:`0.5`)
        max_walk_length (int): The largest number of hops. (default: :obj:`4`)
        modulation (torch.Tensor or str, optional): The initial :math:`f`, or a kernel. (default: :obj:`None`)
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
        out_channels (int, optional): Size of each output sample. (default: :obj:`channels`)

    Example:
        >>> attention = AsymmetricGRFAttention(16, heads=4)
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
        out_channels: int | None = None,
    ) -> None:
        mask = GRFMask(
            heads,
            num_walks=num_walks,
            p_halt=p_halt,
            max_walk_length=max_walk_length,
            modulation=modulation,
            asymmetric=True,
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
        super().__init__(channels, heads, mask, dropout, bias, out_channels)
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
