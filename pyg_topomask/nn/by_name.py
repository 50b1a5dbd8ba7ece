r"""Attention layers by their words."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from torch.nn import Module

from pyg_topomask import masks
from pyg_topomask.errors import ArgumentError
from pyg_topomask.nn.inputs import with_mask
from pyg_topomask.nn.kmip_attention import KMIPAttention
from pyg_topomask.nn.masked_linear_attention import MaskedLinearAttention
from pyg_topomask.nn.named_attention import GRFAttention, HopAttention, RWGNKAttention, SinDegreeAttention
from pyg_topomask.nn.sparse_mask_attention import AsymmetricGRFAttention, GRFSoftmaxAttention, MaskedSoftmaxAttention
from pyg_topomask.utils.options import did_you_mean


def under(mask: Callable[..., masks.Mask], linear: type[MaskedLinearAttention] | None = None) -> Callable[..., Module]:
    r"""Returns a function that builds linear attention with a mask, with the arguments of both, or with
    :obj:`feature_map="softmax"` softmax attention. A layer of its own is :obj:`linear`.
    """

    def build(channels: int, heads: int = 1, *, edge_dim: int | None = None, **options: Any) -> Module:
        if options.get('feature_map') == 'softmax':
            return softmax(channels, heads, edge_dim, **options)
        if edge_dim is not None:
            given = f'{edge_dim} for linear attention'
            raise ArgumentError('edge_dim', given, 'None', 'feature_map="softmax" reads edge features')
        if linear is not None:
            return linear(channels, heads, **options)
        return MaskedLinearAttention(channels, heads, **with_mask(mask, heads, options))

    def softmax(
        channels: int,
        heads: int,
        edge_dim: int | None,
        feature_map: str,
        dropout: float = 0.0,
        route: str = 'auto',
        sums: bool = False,
        **options: Any,
    ) -> MaskedSoftmaxAttention:
        for name, given, accepted in (('route', route, 'auto'), ('sums', sums, False)):
            if given != accepted:
                raise ArgumentError(name, f'{given!r} with feature_map="softmax"', repr(accepted))
        if options.get('positive') is False:
            raise ArgumentError('positive', 'False with feature_map="softmax"', 'True, so that the mask has a logarithm')
        of_both = with_mask(mask, heads, options)
        return MaskedSoftmaxAttention(channels, heads, attention_dropout=dropout, edge_dim=edge_dim, **of_both)

    layer = inspect.signature(linear or MaskedLinearAttention).parameters
    of_mask = {} if linear is not None else inspect.signature(mask).parameters
    arguments = [each for name, each in layer.items() if name != 'mask']
    arguments += [each for name, each in of_mask.items() if name != 'heads' and each.kind is not each.VAR_KEYWORD]
    arguments.append(inspect.signature(build).parameters['edge_dim'])
    build.__dict__['__signature__'] = inspect.Signature(arguments)
    build.__doc__ = (linear or mask).__doc__
    return build


def softmax_under(mask: type[masks.Mask]) -> Callable[..., Module]:
    r"""Returns a function that builds softmax attention over the entries of a mask, with the arguments of both."""

    def build(
        channels: int, heads: int = 1, *, attention_dropout: float = 0.0, edge_dim: int | None = None, **options: Any
    ) -> MaskedSoftmaxAttention:
        entries = mask(**options)  # those of one head, for all
        return MaskedSoftmaxAttention(channels, heads, entries, attention_dropout=attention_dropout, edge_dim=edge_dim)

    *of_layer, _ = inspect.signature(build).parameters.values()
    of_mask = [each for name, each in inspect.signature(mask).parameters.items() if name != 'heads']
    build.__dict__['__signature__'] = inspect.Signature([*of_layer[:2], *of_mask, *of_layer[2:]])
    build.__doc__ = mask.__doc__
    return build


#: The layers by word, called as ``entry(channels, heads, **options)``.
LAYERS: dict[str, Callable[..., Module]] = {
    'Adjacency': under(masks.AdjacencyMask),
    'AsymmetricGRF': AsymmetricGRFAttention,
    'BigBird': softmax_under(masks.BigBirdMask),
    'Causal': under(masks.CausalMask),
    'Dense': under(masks.DenseMask),
    'Expander': softmax_under(masks.ExpanderMask),
    'GRF': under(masks.GRFMask, GRFAttention),
    'GRFSoftmax': GRFSoftmaxAttention,
    'HeatKernel': under(masks.HeatKernelMask),
    'Hop': under(masks.HopMask, HopAttention),
    'Hypercube': under(masks.HypercubeMask),
    'KMIP': KMIPAttention,
    'LearnedFeatures': under(masks.LearnedFeaturesMask),
    'Linear': under(masks.PackingMask),
    'LowRank': under(masks.LowRankMask),
    'Padding': under(masks.PaddingMask),
    'PowerSeries': under(masks.PowerSeriesMask),
    'RWGNK': under(masks.RWGNKMask, RWGNKAttention),
    'SinDegree': under(masks.SinDegreeMask, SinDegreeAttention),
    'StochasticRPE': under(masks.StochasticRPEMask),
    'Toeplitz': under(masks.ToeplitzMask),
    'Tree': under(masks.TreeMask),
}


def attention(word: str, channels: int, heads: int = 1, **options: Any) -> Module:
    r"""Creates an attention layer by its word. The words of a YAML, such as :obj:`gt.layer_type: GINE+HeatKernel` with
    :obj:`topomask.HeatKernel`, are among these, with the same options and defaults. Words of masks give
    :class:`~pyg_topomask.nn.MaskedLinearAttention` with the mask, or with :obj:`feature_map="softmax"`
    :class:`~pyg_topomask.nn.MaskedSoftmaxAttention`.

    Args:
        word (str): One of :obj:`"Adjacency"`, :obj:`"AsymmetricGRF"`, :obj:`"BigBird"`, :obj:`"Causal"`, :obj:`"Dense"`,
            :obj:`"Expander"`, :obj:`"GRF"`, :obj:`"GRFSoftmax"`, :obj:`"HeatKernel"`, :obj:`"Hop"`, :obj:`"Hypercube"`,
            :obj:`"KMIP"`, :obj:`"LearnedFeatures"`, :obj:`"Linear"`, :obj:`"LowRank"`, :obj:`"Padding"`, :obj:`"PowerSeries"`,
            :obj:`"RWGNK"`, :obj:`"SinDegree"`, :obj:`"StochasticRPE"`, :obj:`"Toeplitz"` and :obj:`"Tree"`.
        channels (int): Size of each input sample.
        heads (int): The number of heads. (default: :obj:`1`)
        **options (optional): Arguments of the layer and of its mask, such as :obj:`max_hops` of :obj:`"Hop"`. Beside
            :obj:`feature_map="softmax"`, :obj:`dropout` applies to the coefficients.

    Returns:
        torch.nn.Module: The layer, called as :obj:`layer(x, edge_index, edge_weight, batch, graph)`.

    Raises:
        ValueError: If the word or an option is unknown, or an option is outside its range.

    Example:
        >>> import torch
        >>> layer = attention('HeatKernel', 64, heads=4, lam=2.0)
        >>> layer(torch.randn(3, 64), torch.tensor([[0, 1], [1, 0]])).shape
        torch.Size([3, 64])
    """
    if word not in LAYERS:
        raise ArgumentError('word', repr(word), ', '.join(LAYERS), did_you_mean(word, LAYERS))
    known = [name for name in inspect.signature(LAYERS[word]).parameters if name not in ('channels', 'heads')]
    for option in options:
        if option not in known:
            raise ArgumentError(option, f'an option that {word} has not', ', '.join(known), did_you_mean(option, known))
    return LAYERS[word](channels, heads, **options)
