r"""From YAML values to objects: lookup by name, calls with arguments, and errors that name the option."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

import yaml  # type: ignore[import-untyped]
from yacs.config import CfgNode

from pyg_topomask.errors import ArgumentError
from pyg_topomask.utils.configs import check_keys, parse_yaml
from pyg_topomask.utils.options import did_you_mean

_TOPO = 'model.type TopoGPSModel'
_LAP = 'the encoder LapPE with posenc_LapPE'

#: What may take the place of a name or a group, or an empty text.
ELSEWHERE = {
    # Networks.
    'gatedgcnconv': 'model.type custom_gnn',
    'gineconv': 'model.type custom_gnn',
    'gcniiconv': f'{_TOPO} gt.layer_type GCN+None',
    'MultiModel': f'{_TOPO}, with the word Expander for Exphormer',
    'SingleModel': f'{_TOPO}, with the word Expander for Exphormer',
    'SANTransformer': f'{_TOPO} gt.layer_type None+Transformer',
    'Graphormer': f'{_TOPO} gt.layer_type None+Transformer',
    'GPSwLPEModel': f'{_TOPO} with {_LAP}',
    # Attentions. The last two are words here, and networks elsewhere.
    'Exphormer': 'the word Expander',
    'BiasedTransformer': 'the word Hop',
    'BigBird': f'{_TOPO} gt.layer_type None+BigBird',
    'Performer': f'{_TOPO} gt.layer_type None+Performer',
    # Groups of options and their encoders.
    'posenc_SignNet': _LAP,
    'posenc_HKdiagSE': 'the encoder RWSE with posenc_RWSE',
    'posenc_ElstaticSE': 'the encoder RWSE with posenc_RWSE',
    'posenc_GraphormerBias': 'the word Hop',
    'posenc_ERN': _LAP,
    'gt.bigbird': 'topomask.BigBird',
    'pretrained.dir': 'training from the start, without the group pretrained',
    'prep.add_self_loops': 'topomask.transforms "[AddSelfLoops]"',
    # Data sets, encoders, heads and tasks.
    'PyG-ModelNet10OnDisk': 'the file kmip/modelnet10 of this package',
    'PyG-S3DISOnDisk': 'the file kmip/s3dis of this package',
    'determine_in_script': 'the value that a script of that repository fills in',
    **dict.fromkeys(('PCQM4Mv2', 'PCQM4Mv2Contact'), ''),
    'ZINCNode': 'TypeDictNode',
    'ZINCEdge': 'TypeDictEdge',
    **dict.fromkeys(('ASTNode', 'ASTEdge', 'PPANode', 'PPAEdge'), ''),
    **dict.fromkeys(('graphormer_graph', 'infer_links', 'ogb_code_graph', 'subtoken_prediction'), ''),
}


def remedy_of(name: object) -> str:
    r"""Returns how to get a name that this package lacks, or an empty text for names that it does not know.

    Example:
        >>> remedy_of('Exphormer')
        'instead: the word Expander; unchanged: in a checkout of its repository run pyg-topomask graphgps --cfg <file>'
        >>> remedy_of('no such name')
        ''
    """
    words = str(name).split('+')
    known = [each for each in (*words, *(f'posenc_{word}' for word in words)) if each in ELSEWHERE]
    if not known:
        return ''
    instead = f'instead: {ELSEWHERE[known[0]]}; unchanged: ' if ELSEWHERE[known[0]] else ''
    return f'{instead}in a checkout of its repository run pyg-topomask graphgps --cfg <file>'


T = TypeVar('T')


def lookup(option: str, name: str | None, *tables: Mapping[Any, T]) -> T:
    r"""Returns the entry :obj:`name` of the first table that has it, or raises an error that names the option.

    GraphGym's registry comes first, and the table of this package second. Entries of GraphGPS and of the user take precedence,
    and this package does not register names of GraphGPS.
    """
    for table in tables:
        if name in table:
            return table[name]
    known = sorted({key for table in tables for key in table if isinstance(key, str)})
    raise ArgumentError(option, repr(name), ', '.join(known), remedy_of(name) or did_you_mean(name, known))


@contextmanager
def registered(registry: dict[Any, Any], entries: Mapping[str, Any]) -> Iterator[None]:
    r"""A block in which GraphGym's own modules find names in a registry that lacks them. They are not registered for longer,
    because GraphGPS raises an error for names that are registered already.
    """
    added = [name for name in entries if name not in registry]
    registry.update({name: entries[name] for name in added})
    try:
        yield
    finally:
        for name in added:
            del registry[name]


def decoded(value: Any) -> Any:
    r"""Decodes a value as yacs does, also inside lists and dictionaries, because PyYAML reads :obj:`1e-1` as a string.

    Example:
        >>> decoded({'p_halt': '1e-1', 'shape': ['8', 8], 'sampler': 'iid'})
        {'p_halt': 0.1, 'shape': [8, 8], 'sampler': 'iid'}
    """
    if isinstance(value, Mapping):
        return {key: decoded(item) for key, item in value.items()}
    if isinstance(value, list):
        return [decoded(item) for item in value]
    return CfgNode._decode_cfg_value(value)


def read_yaml(option: str, text: str, accepted: str) -> Any:
    r"""Reads the value of an option from a line of YAML."""
    try:
        check_keys(text, option)
        return parse_yaml(text)
    except yaml.YAMLError as error:
        raise ArgumentError(option, repr(text), accepted) from error


def construct(where: str, build: Callable[..., T], given: Any, **fixed: Any) -> T:
    r"""Calls a class or function with the arguments that a YAML gives under the option :obj:`where`, and with :obj:`fixed` ones
    that it cannot give. Raises an error if an argument is unknown, missing, or has an invalid type or value.
    """
    signature = inspect.signature(build)
    arguments = decoded({} if given is None else given)
    described = f'{arguments!r} for {build.__name__}'
    try:
        signature.bind(**arguments, **fixed)
    except TypeError as error:
        known = [name for name in signature.parameters if name not in fixed]
        unknown = [name for name in arguments if name not in known] if isinstance(arguments, Mapping) else []
        meant = did_you_mean(unknown[0], known) if unknown else ''
        raise ArgumentError(where, described, f'the arguments {known}', f'{error}; {meant}' if meant else str(error)) from error
    try:
        return build(**arguments, **fixed)
    except TypeError as error:
        raise ArgumentError(where, described, 'values of the types that its arguments have', str(error)) from error
    except ArgumentError as error:
        raise error.under(where) from error
    except ValueError as error:
        raise ValueError(f'{where}: {error}') from error


@contextmanager
def named_options(group: str, **paths: str) -> Iterator[None]:
    r"""Renames the argument of an error to the option of a YAML: to its path, if one is given, or else to one of the group."""
    try:
        yield
    except ArgumentError as error:
        if error.argument.startswith('topomask.'):  # an option already
            raise
        path = paths.get(error.argument)
        raise (error.under(group) if path is None else error.renamed(path)) from error
