r"""The global attentions that can stand after the '+' of :obj:`gt.layer_type`."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from torch.nn import Module
from torch_geometric.graphgym.config import cfg

from pyg_topomask.graphgym.composed_mask import build_mask
from pyg_topomask.graphgym.registry import lookup
from pyg_topomask.masks import AdjacencyMask, PowerSeriesMask
from pyg_topomask.nn import AsymmetricGRFAttention, GRFAttention, GRFSoftmaxAttention, MaskedLinearAttention

__all__ = ['ATTENTIONS', 'ATTN_TYPES', 'attention_options', 'build_attention', 'gps_attention_kwargs']


def linear_attention(
    channels: int, heads: int = 1, dropout: float = 0.0, feature_map: str = 'relu', route: str = 'auto'
) -> MaskedLinearAttention:
    r"""Linear attention without a mask: every node attends to all nodes of its graph."""
    return MaskedLinearAttention(channels, heads, feature_map=feature_map, dropout=dropout, route=route)


def adjacency_attention(
    channels: int, heads: int = 1, dropout: float = 0.0, feature_map: str = 'relu', route: str = 'auto'
) -> MaskedLinearAttention:
    r"""Linear attention masked by the adjacency matrix, so that a node attends to its neighbors."""
    return MaskedLinearAttention(
        channels, heads, mask=AdjacencyMask(heads=heads), feature_map=feature_map, dropout=dropout, route=route
    )


def power_series_attention(
    channels: int,
    heads: int = 1,
    dropout: float = 0.0,
    order: int = 4,
    coefficients: str | None = None,
    parameterization: str = 'alpha',
    normalization: str | None = 'sym',
    learnable: bool = True,
    positive: bool = False,
    feature_map: str = 'relu',
    route: str = 'auto',
) -> MaskedLinearAttention:
    r"""Linear attention masked by a learnable power series of the weighted adjacency matrix, exactly."""
    mask = PowerSeriesMask(heads, order, coefficients, parameterization, normalization, learnable, positive)
    return MaskedLinearAttention(channels, heads, mask=mask, feature_map=feature_map, dropout=dropout, route=route)


def masked_attention(
    channels: int, heads: int = 1, dropout: float = 0.0, feature_map: str = 'relu', route: str = 'auto'
) -> MaskedLinearAttention:
    r"""Linear attention under the mask that topomask.mask composes."""
    mask = build_mask(cfg.topomask.mask, heads)
    return MaskedLinearAttention(channels, heads, mask=mask, feature_map=feature_map, dropout=dropout, route=route)


#: Attentions of this package. An entry is called as ``entry(channels, heads=, dropout=, **options)``; the options are
#: its other keyword arguments, which become the group ``cfg.topomask.<name>``.
ATTENTIONS: dict[str, Callable[..., Module]] = {
    'GRF': GRFAttention,
    'AsymmetricGRF': AsymmetricGRFAttention,
    'GRFSoftmax': GRFSoftmaxAttention,
    'PowerSeries': power_series_attention,
    'Linear': linear_attention,
    'Adjacency': adjacency_attention,
    'Masked': masked_attention,
}


#: Names that :class:`~pyg_topomask.nn.TopoGPSConv` builds itself, with its :obj:`attn_type` and one line for users.
ATTN_TYPES: dict[str, tuple[str | None, str]] = {
    'None': (None, 'No global attention: the layer is its local part alone.'),
    'Transformer': ('multihead', 'Softmax attention between all nodes of a graph, quadratic; a baseline.'),
    'Performer': ('performer', "PyG's linear attention, without a mask; a baseline."),
}

#: Arguments that the layer that contains the attention decides.
_NOT_OPTIONS = ('channels', 'out_channels', 'heads', 'dropout')


def attention_options(name: str) -> dict[str, Any]:
    r"""Returns the options of an attention with their defaults, as its signature states them.

    Args:
        name (str): A key of :obj:`ATTENTIONS`.
    """
    parameters = inspect.signature(ATTENTIONS[name]).parameters
    return {
        key: parameter.default
        for key, parameter in parameters.items()
        if key not in _NOT_OPTIONS
        and parameter.default is not parameter.empty
        and isinstance(parameter.default, (bool, int, float, str, type(None)))
    }


def build_attention(name: str, channels: int, heads: int, dropout: float = 0.0) -> Module:
    r"""Builds the attention :obj:`name` with the options of :obj:`cfg.topomask.<name>`.

    Args:
        name (str): A key of :obj:`ATTENTIONS`.
        channels (int): Size of each node's features.
        heads (int): Number of heads.
        dropout (float, optional): Dropout probability in the attention. (default: :obj:`0.0`)
    """
    build = lookup('attention', name, ATTENTIONS)
    return build(channels, heads=heads, dropout=dropout, **cfg.topomask[name])


def gps_attention_kwargs(name: str, channels: int, heads: int, dropout: float) -> dict[str, Any]:
    r"""Returns the keyword arguments that make :class:`~pyg_topomask.nn.TopoGPSConv` use the attention :obj:`name`.

    Args:
        name (str): A key of :obj:`ATTENTIONS` or :obj:`ATTN_TYPES`.
        channels (int): Size of each node's features.
        heads (int): Number of heads.
        dropout (float): Dropout probability in the attention.
    """
    lookup("attention (after '+' in gt.layer_type)", name, ATTENTIONS, ATTN_TYPES)
    if name in ATTENTIONS:
        return {'attn_type': None, 'attn': build_attention(name, channels, heads, dropout)}
    attn_type, _ = ATTN_TYPES[name]
    return {'attn_type': attn_type, 'attn_kwargs': {} if attn_type is None else {'dropout': dropout}}
