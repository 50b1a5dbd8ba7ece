r"""Reading a YAML and overrides into GraphGym's global configuration."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import reduce
from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped]
from torch_geometric.graphgym.config import assert_cfg, cfg, set_cfg
from yacs.config import CfgNode

from pyg_topomask.graphgym.attentions import option_types
from pyg_topomask.graphgym.composed_mask import yaml_overrides

__all__ = ['FREE_OPTIONS', 'defaults', 'load_config', 'option', 'run_name']


#: Options that say where and how long to run rather than what; a run may be resumed with others.
FREE_OPTIONS = (
    'accelerator',
    'cfg_dest',
    'dataset.dir',
    'devices',
    'num_threads',
    'num_workers',
    'optim.max_epoch',
    'out_dir',
    'params',
    'print',
    'run_dir',
    'tensorboard_agg',
    'tensorboard_each_run',
    'topomask.progress',
    'train.auto_resume',
)
#: Groups of the arguments of what other options name.
_ARGUMENTS = (['topomask', 'dataset'], ['topomask', 'model'])


def load_config(cfg_file: str | Path, options: Sequence[str] = ()) -> None:
    r"""Sets GraphGym's global configuration from its defaults, a YAML file and overrides.

    Values have the type of the default, where an integer may stand for a float; options of attentions have any of the types
    that their argument has. GraphGPS's own :obj:`main.py` accepts the type of the default alone.

    Args:
        cfg_file (str or Path): The file.
        options (list, optional): Alternating keys and values, as in :obj:`["gt.layers", "2"]`. (default: :obj:`()`)

    Raises:
        ValueError: If the file is no YAML of options, or an option is unknown or of another type.
    """
    if len(options) % 2:
        raise ValueError(f'options: got {len(options)} words, {" ".join(options)}; accepted are pairs of a key and a value')
    options = yaml_overrides(options)
    set_cfg(cfg)
    try:
        with open(cfg_file) as file:
            cfg.merge_from_other_cfg(_adapted(CfgNode.load_cfg(file), cfg))
        for key, value in zip(options[::2], options[1::2], strict=True):
            *groups, name = key.split('.')
            if groups in _ARGUMENTS:
                _group(groups)[name] = None  # which a value of any type may replace
            if name not in _group(groups):
                whole = 'is a mask as a whole: topomask.mask "{sum: [GRF, SinDegree]}"'
                accepted = whole if key.startswith('topomask.mask.') else _known_keys(key)
                raise ValueError(f'{key}: got an unknown option; accepted {accepted}')
            cfg.merge_from_list([key, _adapted({name: value}, _group(groups), (*groups,))[name]])
        assert_cfg(cfg)
    except KeyError as error:
        # yacs says "Non-existent config key: gt.layer".
        key = error.args[0].split()[-1]
        raise ValueError(f'{cfg_file}: got the unknown option {key}; accepted {_known_keys(key)}') from error
    except ValueError as error:
        mismatch = re.search(r"<class '(\w+)'> vs\. .* vs\. (.*)\) for config key: (\S+)", str(error), re.DOTALL)
        if mismatch is None:
            raise
        accepted, given, key = mismatch.groups()
        raise ValueError(f'{key}: got {given!r}; accepted are values of type {accepted}') from error
    except AttributeError as error:  # yacs asks a list or a number for its items
        raise ValueError(f'{cfg_file}: got a YAML of no keys; accepted are keys and their values') from error
    except yaml.YAMLError as error:
        raise ValueError(f'{cfg_file} is not YAML: {" ".join(str(error).split())}') from error


def run_name(cfg_file: str | Path) -> str:
    r"""Returns the name of the folder for the results of a configuration: that of its YAML, and :obj:`cfg.name_tag`.

    Args:
        cfg_file (str or Path): The YAML, which has been loaded.
    """
    return Path(cfg_file).stem + (f'-{cfg.name_tag}' if cfg.name_tag else '')


def defaults() -> CfgNode:
    r"""Returns the configuration before a YAML is read."""
    node = CfgNode()
    set_cfg(node)
    return node


def option(path: str, node: CfgNode = cfg) -> Any:
    r"""Returns the value of an option.

    Args:
        path (str): The option, such as :obj:`"gt.layers"`.
        node (yacs.config.CfgNode): The configuration. (default: the global one)
    """
    return reduce(CfgNode.__getitem__, path.split('.'), node)


def _group(path: Sequence[str]) -> CfgNode:
    r"""Returns the group of options at a path, empty where there is none."""
    node = cfg
    for part in path:
        node = node.get(part) if isinstance(node, CfgNode) else None
    return node if isinstance(node, CfgNode) else CfgNode()


def _adapted(given: Mapping[str, Any], known: CfgNode, path: tuple[str, ...] = ()) -> CfgNode:
    r"""Returns the options given as yacs accepts them, which compares their types with those of the options known."""
    adapted = CfgNode()
    for name, own in given.items():
        value, default = CfgNode._decode_cfg_value(own), known.get(name)
        if (*path, name) == ('topomask', 'mask') and isinstance(value, str):
            value = CfgNode({value: CfgNode()})  # a mask by its name alone
        types = option_types(path[1], name) if len(path) == 2 and path[0] == 'topomask' else ()
        if isinstance(value, CfgNode) and isinstance(default, CfgNode):
            value = _adapted(value, default, (*path, name))
        elif type(value) is int and int not in types and (float in types or isinstance(default, float)):
            value = float(value)
        if len(types) > 1 and type(value) is not type(default):
            if type(value) not in types:
                accepted = ', '.join('null' if kind is type(None) else kind.__name__ for kind in types)
                raise ValueError(f'{".".join((*path, name))}: got {value!r}; accepted are values of type {accepted}')
            known[name] = value  # of the type that yacs then finds
        adapted[name] = value
    return adapted


def _known_keys(key: str) -> str:
    # The keys beside an unknown one are what its user is after.
    path, node = [], cfg
    for part in key.split('.')[:-1]:
        if not isinstance(node.get(part), CfgNode):
            break
        path.append(part)
        node = node[part]
    place = f'in {".".join(path)}' if path else 'at the top level'
    return f'{place} are {", ".join(sorted(node))}'
