r"""The attention in the layers of the configured model."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from torch.nn import Module
from torch_geometric.data import Data
from torch_geometric.graphgym.config import cfg

from pyg_topomask.errors import ArgumentError
from pyg_topomask.graphgym.names.attentions import ATTENTIONS, ATTN_TYPES, EDGE_ATTR, EDGE_WEIGHTS, option_value
from pyg_topomask.graphgym.names.lookup import lookup, named_options
from pyg_topomask.nn.edge_weights import EdgeWeights
from pyg_topomask.nn.inputs import check_heads

#: Models of this package, of GraphGPS and of Exphormer that read an attention from :obj:`gt.layer_type`.
GPS_MODELS = ('TopoGPSModel', 'GPSModel', 'MultiModel', 'SingleModel')


def build_attention(name: str, channels: int, heads: int, dropout: float = 0.0) -> Module:
    r"""Builds the attention :obj:`name` with the options :obj:`cfg.topomask.<name>`. The dropout applies to the coefficients
    if the attention computes them, or else to its output. With :obj:`cfg.topomask.<name>.edge_attr`, it reads the edge features
    of an encoder, of :obj:`channels` channels.
    """
    build = lookup('attention', name, ATTENTIONS)
    dropouts = [key for key in ('attention_dropout', 'dropout') if key in inspect.signature(build).parameters]
    given = {option: value for option, value in cfg.topomask[name].items() if option not in (EDGE_WEIGHTS, EDGE_ATTR)}
    options = {option: option_value(name, option, value) for option, value in given.items()}
    if cfg.topomask[name][EDGE_ATTR]:
        _check_edge_attr(name, build)
        options['edge_dim'] = channels
    with named_options(f'topomask.{name}', **_options_of_model(dropouts[:1])):
        return build(channels, heads=heads, **dict.fromkeys(dropouts[:1], dropout), **options)


def _check_edge_attr(name: str, build: Callable[..., Module]) -> None:
    option, takes = f'topomask.{name}.{EDGE_ATTR}', 'edge_dim' in inspect.signature(build).parameters
    if not takes or cfg.topomask[name].get('feature_map', 'softmax') != 'softmax':
        given = f'True for {name}, which is linear attention' if takes else f'True for {name}, which reads no edge features'
        remedy = 'Expander, GRFSoftmax, KMIP, and masks with feature_map: softmax read edge features'
        raise ArgumentError(option, given, 'False', remedy)
    _check_edge_encoder(option, 'True', 'False')


def _check_edge_encoder(option: str, value: str, without: str) -> None:
    if not cfg.dataset.edge_encoder:
        remedy = 'dataset.edge_encoder: True and dataset.edge_encoder_name: LinearEdgeAttr encode the edge features'
        raise ArgumentError(option, f'{value} without encoded edge features', without, remedy)


def edge_features(attn: Module, data: Data) -> dict[str, Any]:
    r"""Returns the edge features of data as an argument of an attention, if it reads them."""
    return {} if getattr(attn, 'edge_bias', None) is None else {'edge_attr': data.get('edge_attr')}


def build_edge_weights(name: str, attn: Module, channels: int) -> EdgeWeights | None:
    r"""Builds the network of the edge weights of an attention :obj:`name` if :obj:`cfg.topomask.<name>.edge_weights` is
    :obj:`"learned"`. It reads the edge features of an encoder, and the node features, of :obj:`channels` channels.
    """
    value, option = cfg.topomask[name][EDGE_WEIGHTS], f'topomask.{name}.{EDGE_WEIGHTS}'
    if value is None:
        return None
    if value != 'learned':
        raise ArgumentError(option, repr(value), '"learned" and null')
    if not getattr(attn, 'learns_weights', True):
        given = f'"learned" for {name}, which hands no gradient on to edge weights'
        remedy = (
            'Adjacency, AsymmetricGRF, GRF, GRFSoftmax, HeatKernel, PowerSeries, Tree with kind: exp, and Masked with one of '
            'these do'
        )
        raise ArgumentError(option, given, 'null', remedy)
    _check_edge_encoder(option, '"learned"', 'null')
    masks = attn.modules()
    return EdgeWeights(channels, channels, symmetric=any(getattr(mask, 'direction', None) == 'symmetric' for mask in masks))


def configured_options(name: str) -> dict[str, Any]:
    r"""Returns the options of an attention in the configuration by their paths, as plain values."""
    groups = {f'topomask.{name}': cfg.topomask[name]}
    if name == 'Masked':
        groups['topomask.mask'] = cfg.topomask.mask
    if name == 'SparseAttention':
        groups['gt.sparse'] = cfg.gt.sparse
    return {f'{path}.{key}': _plain(value) for path, group in groups.items() for key, value in group.items()}


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _plain(each) for key, each in value.items()}
    return [_plain(each) for each in value] if isinstance(value, (list, tuple)) else value


def _options_of_model(dropouts: Sequence[str] = ()) -> dict[str, str]:
    r"""Returns the options of the configured model that decide arguments of its attentions, by these arguments."""
    if cfg.model.type == 'gnn':
        return {'heads': 'gnn.att_heads', 'channels': 'gnn.dim_inner', 'out_channels': 'gnn.dim_inner'}
    sizes = {'heads': 'gt.n_heads', 'channels': 'gt.dim_hidden', 'out_channels': 'gt.dim_hidden'}
    return sizes | dict.fromkeys(dropouts, 'gt.attn_dropout')


def check_attention(name: str) -> None:
    r"""Raises a :class:`ValueError` that lists all attentions if the name is unknown."""
    lookup("gt.layer_type, after '+'", name, ATTENTIONS, ATTN_TYPES)


def layer_option() -> tuple[str, str]:
    r"""Returns the option that names the layers of the configured model, and its value. It is :obj:`model.type` for all models
    that do not name them."""
    if cfg.model.type == 'gnn':
        return 'gnn.layer_type', cfg.gnn.layer_type
    if cfg.model.type in GPS_MODELS:
        return 'gt.layer_type', cfg.gt.layer_type
    return 'model.type', cfg.model.type


def configured_attention() -> str:
    r"""Returns the name of the attention in the layers of the configured model, or :obj:`"None"` for layers and models that are
    not from this package."""
    option, value = layer_option()
    if option == 'gt.layer_type':
        return value.rpartition('+')[2]
    return next((name for name in ATTENTIONS if value == f'{name.lower()}_attention'), 'None')


def named_attentions() -> set[str]:
    r"""Returns the names of all attentions in the layers of the configured model, possibly with names of local layers."""
    option, value = layer_option()
    # Forks of GraphGPS sum any number of attentions.
    return set(re.split(r'\+|__', value)) if option == 'gt.layer_type' else {configured_attention()}


def channels_per_head(channels: int, heads: int) -> int:
    r"""Returns the channels per head, and checks that the heads divide the channels."""
    with named_options('gt', **_options_of_model()):
        check_heads(heads, channels)
    return channels // heads


def build_configured_attention() -> Module | None:
    r"""Returns the attention in the layers of the configured model, or :obj:`None` if it is not from this package."""
    option, _ = layer_option()
    if option == 'model.type':
        return None
    name = configured_attention()
    check_attention(name)
    plain = option == 'gnn.layer_type'
    channels, heads = (cfg.gnn.dim_inner, cfg.gnn.att_heads) if plain else (cfg.gt.dim_hidden, cfg.gt.n_heads)
    return build_attention(name, channels, heads) if name in ATTENTIONS else None


def gps_attention_kwargs(name: str, channels: int, heads: int, dropout: float) -> dict[str, Any]:
    r"""Returns the arguments of :class:`~pyg_topomask.nn.TopoGPSConv` for an attention with dropout."""
    check_attention(name)
    if name in ATTENTIONS:
        attn = build_attention(name, channels, heads, dropout)
        return {'attn_type': None, 'attn': attn, 'edge_weights': build_edge_weights(name, attn, channels)}
    attn_type, _ = ATTN_TYPES[name]
    if attn_type is not None:
        channels_per_head(channels, heads)
    return {'attn_type': attn_type, 'attn_kwargs': {} if attn_type is None else {'dropout': dropout}}
