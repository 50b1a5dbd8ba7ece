r"""Attentions after the + in :obj:`gt.layer_type`, their options, and the attention in the layers of the configured model."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch.nn import Module
from torch_geometric.data import Data
from torch_geometric.graphgym.config import cfg

from pyg_topomask import masks, nn
from pyg_topomask.errors import ArgumentError
from pyg_topomask.graphgym.names.lookup import lookup, named_options
from pyg_topomask.graphgym.names.masks import COMPOSITIONS, MASKS, build_mask, configured_tree
from pyg_topomask.nn.by_name import LAYERS, under
from pyg_topomask.nn.edge_weights import EdgeWeights
from pyg_topomask.nn.inputs import check_heads


def composed_mask(heads: int = 1, mask: str | None = None) -> masks.Mask:
    r"""Linear attention with the composed mask of topomask.mask, or else of the option mask, a line of YAML."""
    return build_mask(configured_tree(mask), heads)


def sparse_attention(channels: int, heads: int = 1, attention_dropout: float = 0.0) -> nn.KMIPAttention:
    r"""The attention KMIP, with the options gt.sparse of the authors' configurations and their defaults."""
    sparse = cfg.gt.sparse
    return nn.KMIPAttention(
        channels,
        heads,
        sparse.k,
        kq_dim=sparse.kq_dim or channels,
        val_dim=sparse.val_dim or channels,
        head_agg=str(sparse.head_agg).lower(),
        random_fraction=sparse.random_fraction if sparse.random_attention else 0.0,
        attention_dropout=attention_dropout,
    )


#: The words of :data:`~pyg_topomask.nn.by_name.LAYERS` that are attentions of a YAML.
_WORDS = (
    'GRF',
    'AsymmetricGRF',
    'GRFSoftmax',
    'RWGNK',
    'SinDegree',
    'KMIP',
    'Expander',
    'PowerSeries',
    'HeatKernel',
    'Hop',
    'Toeplitz',
    'Tree',
    'Causal',
    'Adjacency',
    'LowRank',
    'Linear',
    'BigBird',
)

#: Attentions of this package. An entry is called as ``entry(channels, heads=, **options)``, with :obj:`attention_dropout` or
#: :obj:`dropout` if it has one of them. The options are its other keyword arguments, which become the group
#: ``cfg.topomask.<name>``.
ATTENTIONS: dict[str, Callable[..., Module]] = {
    **{word: LAYERS[word] for word in _WORDS},
    'SparseAttention': sparse_attention,
    'Masked': under(composed_mask),
}


#: Names that :class:`~pyg_topomask.nn.TopoGPSConv` builds itself, with its :obj:`attn_type` and one line for users.
ATTN_TYPES: dict[str, tuple[str | None, str]] = {
    'None': (None, 'No global attention: the layer is its local part alone.'),
    'Transformer': ('multihead', 'Softmax attention between all nodes of a graph, quadratic; a baseline.'),
    'Performer': ('performer', "PyG's linear attention, without a mask; a baseline."),
}

#: Options of :obj:`cfg.topomask` that are not groups of an attention.
GROUPS = ('dataset', 'mask', 'model', 'num_workers', 'prepare_bytes', 'progress', 'redraw_period', 'shard', 'svd', 'transforms')

#: The options of each attention that make it learn edge weights, with the value :obj:`"learned"`, and read edge features.
EDGE_WEIGHTS, EDGE_ATTR = 'edge_weights', 'edge_attr'

#: Arguments that the layer around the attention sets.
_NOT_OPTIONS = ('channels', 'out_channels', 'heads', 'dropout', 'attention_dropout', 'edge_dim')


def register_mask(name: str, mask: type[masks.Mask]) -> None:
    r"""Registers a name for your own mask in YAMLs. The name works as an attention in :obj:`gt.layer_type: GINE+<name>`, with
    the keyword arguments of the mask as options :obj:`topomask.<name>`, and in composed masks of :obj:`topomask.mask`. Call
    this function before the configuration is loaded, like GraphGym's own registrations.

    Args:
        name (str): The name.
        mask (type): The class, called as :obj:`mask(heads=, **options)`. Options are
            the arguments whose default is a number, a string, a boolean or :obj:`None`.

    Raises:
        ValueError: If the name is taken or no identifier, or the class is no mask, has no :obj:`heads`, or has an option
            without default or named like one of the attention.

    Example:
        >>> register_mask('Adjacency', masks.AdjacencyMask)  # is there already, which is no error
        >>> sorted(attention_options('Adjacency'))
        ['bias', 'edge_attr', 'edge_weights', 'feature_map', 'flow', 'normalization', 'route', 'self_loop', 'sums']
    """
    taken = {*ATTENTIONS, *ATTN_TYPES, *MASKS, *COMPOSITIONS, *GROUPS}
    if name in taken and MASKS.get(name) is not mask:
        raise ArgumentError('name', f'{name!r}, which is taken', f'names other than {", ".join(sorted(taken))}')
    if not (isinstance(name, str) and name.isidentifier() and '__' not in name):
        raise ArgumentError('name', repr(name), 'identifiers of Python without "__"')
    if not (isinstance(mask, type) and issubclass(mask, masks.Mask)):
        raise ArgumentError('mask', repr(mask), 'subclasses of Mask')
    signature = inspect.signature(mask).parameters.values()
    parameters = [each for each in signature if each.kind not in (each.VAR_KEYWORD, each.VAR_POSITIONAL)]
    if not any(each.name == 'heads' or each.kind == each.VAR_KEYWORD for each in signature):
        raise ArgumentError('mask', f'{mask.__name__}, which has no argument heads', 'classes called with heads=')
    required = [each.name for each in parameters if each.name != 'heads' and each.default is each.empty]
    if required:
        raise ArgumentError('mask', f'{mask.__name__}, whose argument {required[0]!r} has no default', 'classes with defaults')
    of_layer = ('bias', 'channels', 'dropout', EDGE_ATTR, 'edge_dim', EDGE_WEIGHTS, 'feature_map', 'route', 'sums')
    clash = [each.name for each in parameters if each.name in of_layer]
    if clash:
        given = f'{mask.__name__}, whose argument {clash[0]!r} is one of the attention'
        raise ArgumentError('mask', given, 'classes with other arguments')
    MASKS[name] = mask
    ATTENTIONS.setdefault(name, under(mask))


def attention_options(name: str) -> dict[str, Any]:
    r"""Returns the options of an attention with their defaults, from its signature, and those of its edges."""
    parameters = inspect.signature(ATTENTIONS[name]).parameters
    options = {
        key: parameter.default
        for key, parameter in parameters.items()
        if key not in _NOT_OPTIONS and isinstance(parameter.default, bool | int | float | str | None)
    }
    return options | {EDGE_WEIGHTS: None, EDGE_ATTR: False}


#: Types of configuration values, by the annotation of an argument.
_TYPES: dict[str, tuple[type, ...]] = {
    'bool': (bool,),
    'int': (int,),
    'float': (float,),
    'str': (str,),
    'None': (type(None),),
    'Sequence': (list, tuple),
    'Tensor': (list, tuple),
}


def option_types(name: str, option: str) -> tuple[type, ...]:
    r"""Returns the accepted types of an option of an attention, from the annotation of its argument, or none for others."""
    if name not in ATTENTIONS or option not in attention_options(name):
        return ()
    return tuple(dict.fromkeys(accepted for kind in _kinds(name, option) for accepted in _TYPES.get(kind, ())))


def _kinds(name: str, option: str) -> list[str]:
    if option in (EDGE_WEIGHTS, EDGE_ATTR):
        return ['str', 'None'] if option == EDGE_WEIGHTS else ['bool']
    annotation = inspect.signature(ATTENTIONS[name]).parameters[option].annotation
    text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    return [kind.strip().rpartition('.')[2].partition('[')[0] for kind in text.split('|')]


def option_value(name: str, option: str, value: Any) -> Any:
    r"""Converts the value of an option for the attention: a list becomes a tensor if the attention accepts tensors."""
    if not isinstance(value, (list, tuple)) or 'Tensor' not in _kinds(name, option):
        return value
    try:
        return torch.tensor(value)
    except (TypeError, ValueError) as error:
        raise ArgumentError(f'topomask.{name}.{option}', repr(value), 'lists of numbers') from error


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
        remedy = 'BigBird, Expander, GRFSoftmax, KMIP, and masks with feature_map: softmax read edge features'
        raise ArgumentError(option, given, 'False', remedy)
    _check_edge_encoder(option, 'True', 'False')


def _check_edge_encoder(option: str, value: str, without: str) -> None:
    if not cfg.dataset.edge_encoder:
        remedy = 'dataset.edge_encoder: True and dataset.edge_encoder_name: LinearEdgeAttr encode the edge features'
        raise ArgumentError(option, f'{value} without encoded edge features', without, remedy)


def edge_features(attn: Module, data: Data) -> dict[str, Any]:
    r"""Returns the edge features of data as an argument of an attention, if it reads them."""
    return {} if getattr(attn, 'edge_terms', None) is None else {'edge_attr': data.get('edge_attr')}


def build_edge_weights(name: str, attn: Module, channels: int) -> EdgeWeights | None:
    r"""Builds the network of the edge weights of an attention :obj:`name` if :obj:`cfg.topomask.<name>.edge_weights` is
    :obj:`"learned"`, or :obj:`"learned_per_head"` for weights of each head. It reads the edge features of an encoder, and the
    node features, of :obj:`channels` channels.
    """
    value, option = cfg.topomask[name][EDGE_WEIGHTS], f'topomask.{name}.{EDGE_WEIGHTS}'
    if value is None:
        return None
    if value not in ('learned', 'learned_per_head'):
        raise ArgumentError(option, repr(value), '"learned", "learned_per_head" and null')
    if not getattr(attn, 'learns_weights', True):
        given = f'"{value}" for {name}, which hands no gradient on to edge weights'
        remedy = (
            'Adjacency, AsymmetricGRF, GRF, GRFSoftmax, HeatKernel, PowerSeries, Hop with path_weights: mean, RWGNK with '
            'transition: weight, Expander with input_weights: True, Tree with kind: exp, and Masked with one of these do'
        )
        raise ArgumentError(option, given, 'null', remedy)
    _check_edge_encoder(option, f'"{value}"', 'null')
    symmetric = any(getattr(mask, 'direction', None) == 'symmetric' for mask in attn.modules())
    heads = getattr(attn, 'heads', None) if value == 'learned_per_head' else None
    return EdgeWeights(channels, channels, symmetric=symmetric, heads=heads)


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
