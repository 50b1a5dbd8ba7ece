r"""The names of attentions after the '+' in :obj:`gt.layer_type`, and their options."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import torch
from torch.nn import Module
from torch_geometric.graphgym.config import cfg

from pyg_topomask import masks, nn
from pyg_topomask.errors import ArgumentError
from pyg_topomask.graphgym.names.masks import COMPOSITIONS, MASKS, build_mask, configured_tree
from pyg_topomask.nn.by_name import LAYERS, under


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
        raise ArgumentError(
            'mask', f'{mask.__name__}, whose argument {clash[0]!r} is one of the attention', 'classes with other arguments'
        )
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
