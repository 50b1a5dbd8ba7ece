r"""The options :obj:`cfg.topomask`, the GraphGPS options of our YAMLs, and loading from a YAML with overrides."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from functools import reduce
from itertools import pairwise
from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped]
from torch_geometric.graphgym import register
from torch_geometric.graphgym.config import assert_cfg, cfg, set_cfg
from yacs.config import CfgNode

from pyg_topomask.errors import ArgumentError
from pyg_topomask.graphgym.names.attentions import ATTENTIONS, attention_options, option_types
from pyg_topomask.graphgym.names.encoders import SVD_OPTIONS
from pyg_topomask.graphgym.names.lookup import ELSEWHERE, decoded, read_yaml, remedy_of
from pyg_topomask.graphgym.names.masks import read_tree
from pyg_topomask.utils.checks import check_file_name
from pyg_topomask.utils.configs import check_keys, check_overrides, find_config, parse_yaml
from pyg_topomask.utils.options import did_you_mean

#: Options of GraphGPS with its defaults, by the name of its registered config function.
GRAPHGPS_SCHEMA: dict[str, dict[str, Any]] = yaml.safe_load("""
cfg_gt:
  gt: {layer_type: GINE+GRF, layers: 3, n_heads: 8, dim_hidden: 64, full_graph: true, gamma: 1.0e-5, pna_degrees: [],
    dropout: 0.0, attn_dropout: 0.0, layer_norm: false, batch_norm: true, residual: true, sparse: {k: 10, kq_dim: null,
    val_dim: null, head_agg: Linear, random_attention: false, random_fraction: 0.1}}
extended_optim:
  optim: {batch_accumulation: 1, reduce_factor: 0.1, schedule_patience: 10, min_lr: 0.0, num_warmup_epochs: 50,
    clip_grad_norm: false, clip_grad_norm_value: 1.0}
dataset_cfg:
  dataset: {node_encoder_num_types: 0, edge_encoder_num_types: 0, slic_compactness: 10}
split:
  dataset: {split_mode: standard, split_index: 0, split_dir: ./splits}
  run_multiple_splits: []
overwrite_defaults:
  train: {mode: standard}
extended_cfg:
  name_tag: ''
  train: {ckpt_best: false, shuffle: true}
custom_gnn:
  gnn: {residual: false}
cfg_wandb:
  wandb: {use: false, entity: '', project: '', name: ''}
posenc:
  posenc_LapPE: {enable: false, model: none, dim_pe: 16, layers: 3, n_heads: 4, post_layers: 0, raw_norm_type: none,
    pass_as_var: false, eigen: {laplacian_norm: sym, eigvec_norm: L2, max_freqs: 10}}
  posenc_RWSE: {enable: false, model: none, dim_pe: 16, layers: 3, n_heads: 4, post_layers: 0, raw_norm_type: none,
    pass_as_var: false, kernel: {times: [], times_func: ''}}
  posenc_EquivStableLapPE: {enable: false, raw_norm_type: none, eigen: {laplacian_norm: sym, eigvec_norm: L2,
    max_freqs: 10}}
""")

#: Options of where to run. A run that replaces or resumes another one may change them.
FREE_OPTIONS = (
    'accelerator',
    'cfg_dest',
    'dataset.dir',
    'devices',
    'num_threads',
    'num_workers',
    'out_dir',
    'params',
    'print',
    'run_dir',
    'tensorboard_agg',
    'tensorboard_each_run',
    'topomask.prepare_bytes',
    'topomask.progress',
    'topomask.shard',
    'train.auto_resume',
)

#: The option of how long to run, which only a resumed run may change.
LENGTH_OPTION = 'optim.max_epoch'

#: Networks of GraphGPS, and the same ones of this package.
SAME_NETWORKS = {'GPSModel': 'TopoGPSModel', 'custom_gnn': 'CustomGNN'}

#: Groups of arguments of objects that other options name.
_ARGUMENTS = (['topomask', 'dataset'], ['topomask', 'model'])


def _declare(node: CfgNode, options: dict[str, Any]) -> None:
    for key, default in options.items():
        if isinstance(default, dict):
            _declare(node.setdefault(key, CfgNode()), default)
        else:
            node[key] = copy(default)  # otherwise, changes to a list would become defaults of the next run


def declare_config(node: CfgNode) -> None:
    r"""Declares the options of this package in a GraphGym configuration, which ``graphgps_configs/README.md`` explains.

    Without GraphGPS, this function also declares the GraphGPS options of our configurations, so that one YAML runs in both. It
    does not change options that GraphGPS declares.
    """
    # Of each attention, one option for each keyword argument of its class.
    node.topomask = CfgNode({name: attention_options(name) for name in ATTENTIONS})
    # The mask of the attention Masked, and arguments of the model and of the data set.
    for name in ('mask', 'model', 'dataset'):
        node.topomask[name] = CfgNode(new_allowed=True)
    node.topomask.svd = CfgNode(dict(SVD_OPTIONS))
    _declare(
        node.topomask,
        {
            'transforms': [],  # applied once to every graph, each a name or {name: {argument: value}}
            'redraw_period': 0,  # epochs after which `train` redraws random features; 0: never
            'num_workers': 0,  # processes for the transforms
            'prepare_bytes': 2**20,  # the most to store for a graph and a mask, see PrepareMasks; 0: nothing
            'progress': True,  # progress bars
            'shard': 'batch',  # what processes divide: the graphs of each batch, or with 'graph' the nodes of one graph
        },
    )
    # Sizes of the edge features and of the previous steps of particles, which the loader sets.
    _declare(node.share, {'dim_edge': 0, 'dim_history': 0})
    for declarer, options in GRAPHGPS_SCHEMA.items():
        if declarer not in register.config_dict:
            _declare(node, options)


register.config_dict.setdefault('topomask', declare_config)
# GraphGym set its defaults when it was imported, before this registration. Without this, `cfg.topomask` would exist
# only after the next `set_cfg`.
if 'topomask' not in cfg:
    declare_config(cfg)


def load_config(cfg_file: str | Path, options: Sequence[str] = ()) -> None:
    r"""Sets GraphGym's global configuration from its defaults, a YAML file and overrides.

    Values have the type of the default, and integers are valid for floats. Options of attentions accept all types of their
    argument. GraphGPS's own :obj:`main.py` accepts only the type of the default.

    The file may be the name of a configuration of this package. Options alternate between keys and values, as in
    :obj:`["gt.layers", "2"]`. Raises a :class:`ValueError` if the file is missing or not a YAML of options, or if an option is
    unknown, has the wrong type, or is one of GraphGPS that this package lacks.
    """
    path = find_config(cfg_file)
    check_overrides(options)
    options = yaml_overrides(options)
    set_cfg(cfg)
    with _errors_of_options(str(cfg_file)):
        given = _read(path, str(cfg_file))
        _drop_groups_of_forks(given)
        cfg.merge_from_other_cfg(_adapted(given, cfg))
        for key, value in zip(options[::2], options[1::2], strict=True):
            _override(key, value)
        if cfg.model.type not in register.network_dict:
            cfg.model.type = SAME_NETWORKS.get(cfg.model.type, cfg.model.type)
        assert_cfg(cfg)


@contextmanager
def _errors_of_options(cfg_file: str) -> Iterator[None]:
    r"""Replaces errors of yacs and PyYAML by errors that name the option."""
    try:
        yield
    except KeyError as error:
        # yacs says "Non-existent config key: gt.layer".
        raise _unknown_option(error.args[0].split()[-1]) from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ValueError(f'{cfg_file} is not YAML: {" ".join(str(error).split())}') from error
    except ValueError as error:
        mismatch = re.search(r"<class '(\w+)'> vs\. .* vs\. (.*)\) for config key: (\S+)", str(error), re.DOTALL)
        if mismatch is None:
            raise
        accepted, given, key = mismatch.groups()
        raise ArgumentError(key, repr(given), f'values of type {accepted}') from error
    except AttributeError as error:  # yacs requests the items of a list or a number
        raise ArgumentError(cfg_file, 'a YAML of no keys', 'keys and their values') from error


def _read(path: Path, cfg_file: str) -> CfgNode:
    text = path.read_text(encoding='utf-8')
    check_keys(text, cfg_file)
    given = CfgNode(parse_yaml(text))
    if not given:
        raise ArgumentError(cfg_file, 'a YAML of no keys', 'keys and their values')
    if 'recommend' in given:
        accepted = 'configurations of networks, without the key recommend'
        raise ArgumentError('cfg', f'{cfg_file!r}, a configuration of recommendation', accepted)
    for name in ('params', 'run_dir'):
        given.pop(name, None)  # in the file that a run writes
    return given


def _drop_groups_of_forks(given: CfgNode) -> None:
    r"""Removes groups of options of GraphGPS and its forks that change nothing in a network of this package, and raises an
    error for those that would.
    """
    for name, group in list(given.items()):
        if name in cfg or not isinstance(group, CfgNode):
            continue
        for key, missing in ((name, 'enable'), (f'{name}.dir', 'dir'), (f'{name}.add_self_loops', 'add_self_loops')):
            if key in ELSEWHERE and group.get(missing):
                raise ArgumentError(key, 'an option of GraphGPS or of a fork of it', 'files without it', remedy_of(key))
        # Expander edges, prep, are for networks and attentions that are unknown here. So is graphormer.
        if name in ELSEWHERE or name in ('graphormer', 'prep', 'pretrained'):
            del given[name]


def _override(key: str, value: str) -> None:
    *groups, name = key.split('.')
    if groups in _ARGUMENTS:
        _group(groups)[name] = None  # a value of any type may replace it
    if name not in _group(groups):
        if key.startswith('topomask.mask.'):
            whole = 'a mask as a whole: topomask.mask "{sum: [GRF, SinDegree]}"'
            raise ArgumentError(key, 'an unknown option', whole)
        raise _unknown_option(key)
    cfg.merge_from_list([key, _adapted({name: value}, _group(groups), (*groups,))[name]])


def yaml_overrides(words: Sequence[str]) -> list[str]:
    r"""Converts a command line with YAML values of :obj:`topomask.mask`, :obj:`topomask.transforms`, :obj:`topomask.dataset`,
    :obj:`topomask.model` and lists to the syntax of yacs.

    yacs cannot replace the group :obj:`topomask.mask`, so the mask becomes the option :obj:`topomask.Masked.mask`. The
    transforms become a Python list, and :obj:`null` becomes :obj:`None`. A value that is not valid YAML raises an error.

    Example:
        >>> yaml_overrides(['topomask.transforms', '[AddForest, {AddRandomWalkPE: {walk_length: 4}}]'])
        ['topomask.transforms', "['AddForest', {'AddRandomWalkPE': {'walk_length': 4}}]"]
        >>> yaml_overrides(['gt.layers', '2', 'topomask.mask', "{'sum': ['GRF', 'SinDegree']}"])
        ['gt.layers', '2', 'topomask.Masked.mask', '{sum: [GRF, SinDegree]}']
    """
    # yacs reads null as a string.
    words = ['None' if word == 'null' else word for word in words]
    for index, (key, value) in enumerate(pairwise(words)):
        if key == 'topomask.mask':
            tree = read_tree(value)
            # Without quotes, yacs would read it as a Python dictionary.
            text = yaml.safe_dump(tree, default_flow_style=True, width=math.inf).strip() if isinstance(tree, dict) else value
            words[index : index + 2] = ['topomask.Masked.mask', text]
        elif key == 'topomask.transforms':
            entries = read_yaml(key, value, 'lists in YAML, such as [AddForest, {AddRandomWalkPE: {walk_length: 4}}]')
            words[index + 1] = repr(decoded(entries)) if isinstance(entries, list) else value
        elif key in ('topomask.dataset', 'topomask.model'):
            arguments = read_yaml(key, value, 'arguments in YAML, such as {heads: 2}')
            words[index + 1] = repr(decoded(arguments)) if isinstance(arguments, dict) else value
        elif isinstance(value, str) and value.startswith('[') and _takes_list(key, value):
            entries = read_yaml(key, value, 'lists in YAML, such as [accuracy, f1]')
            words[index + 1] = repr(decoded(entries)) if isinstance(entries, list) else value
    return words


def _takes_list(key: str, value: str) -> bool:
    r"""Returns whether the option is a list, and the value no list of Python."""
    *groups, name = key.split('.')
    return isinstance(_group(groups).get(name), list) and isinstance(CfgNode._decode_cfg_value(value), str)


def run_name(cfg_file: str | Path) -> str:
    r"""Returns the name of the results folder: the name of the YAML, followed by :obj:`cfg.name_tag`, which must be no path."""
    check_file_name(name_tag=cfg.name_tag)
    return Path(cfg_file).stem + (f'-{cfg.name_tag}' if cfg.name_tag else '')


def defaults() -> CfgNode:
    r"""Returns the configuration before a YAML is read."""
    node = CfgNode()
    set_cfg(node)
    return node


def option(path: str, node: CfgNode = cfg) -> Any:
    r"""Returns the value of an option, such as :obj:`"gt.layers"`, by default in the global configuration."""
    return reduce(CfgNode.__getitem__, path.split('.'), node)


def _group(path: Sequence[str]) -> CfgNode:
    r"""Returns the group of options at a path, or an empty group."""
    node = cfg
    for name in path:
        node = node.get(name) if isinstance(node, CfgNode) else None
    return node if isinstance(node, CfgNode) else CfgNode()


def _adapted(given: Mapping[str, Any], known: CfgNode, path: tuple[str, ...] = ()) -> CfgNode:
    r"""Converts options to the types that yacs expects."""
    adapted = CfgNode()
    for name, text in given.items():
        key = '.'.join((*path, name))
        value, default = CfgNode._decode_cfg_value(text), known.get(name)
        if key == 'gt.sparse.head_agg' and value is None:
            value = 'none'  # the authors write None
        types = option_types(path[1], name) if len(path) == 2 and path[0] == 'topomask' else ()
        if key == 'topomask.mask' and isinstance(value, str):
            value = CfgNode({value: CfgNode()})  # a mask by its name alone
        if value in ('true', 'false') and (bool in types if types else isinstance(default, bool) or list(path) in _ARGUMENTS):
            value = value == 'true'  # of the command line, as in a YAML
        if isinstance(value, CfgNode) and isinstance(default, CfgNode):
            value = _adapted(value, default, (*path, name))
        elif value is None and isinstance(default, (str, bool, int, float)) and type(None) not in types:
            raise ArgumentError(key, None, f'values of type {type(default).__name__}')
        elif isinstance(default, CfgNode) and not isinstance(value, Mapping):
            raise ArgumentError(key, repr(value), 'keys and their values')
        elif type(value) is int and int not in types and (float in types or isinstance(default, float)):
            value = float(value)
        elif type(value) in (int, float) and isinstance(default, str) and not types:
            value = repr(str(text))  # a name_tag of digits, which yacs would read as a number
        if types and type(value) is not type(default):
            if type(value) not in types:
                accepted = ', '.join('null' if kind is type(None) else kind.__name__ for kind in types)
                raise ArgumentError(key, repr(value), f'values of type {accepted}')
            known[name] = value  # of the type that yacs then finds
        adapted[name] = value
    return adapted


def _meant(key: str, path: Sequence[str], node: CfgNode) -> str:
    r"""Returns the option that an unknown one may mean: one of the same group, or one of this name in another group."""
    unknown = key.split('.')[len(path)]
    if close := did_you_mean(unknown, node):
        return close
    name = key.split('.')[-1]
    elsewhere = [f'{group}.{name}' for group in sorted(cfg) if isinstance(cfg[group], CfgNode) and name in cfg[group]]
    return f'did you mean {" or ".join(elsewhere)}?' if elsewhere else ''


def _unknown_option(key: str) -> ArgumentError:
    # The sibling keys are the likely alternatives of an unknown key.
    path, node = [], cfg
    for group in key.split('.')[:-1]:
        if not isinstance(node.get(group), CfgNode):
            break
        path.append(group)
        node = node[group]
    place = '.'.join(path) if path else 'the top level'
    remedy = remedy_of('.'.join(key.split('.')[:2])) or _meant(key, path, node)
    return ArgumentError(key, f'an unknown option of {place}', ', '.join(sorted(node)), remedy)
