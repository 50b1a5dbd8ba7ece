r"""Reading a YAML and overrides into GraphGym's global configuration."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import yaml  # type: ignore[import-untyped]
from torch_geometric.graphgym.config import cfg, load_cfg, set_cfg

__all__ = ['load_config']


def load_config(cfg_file: str | Path, options: Sequence[str] = ()) -> None:
    r"""Sets GraphGym's global configuration from its defaults, a YAML file and overrides.

    Args:
        cfg_file (str or Path): The file.
        options (list, optional): Alternating keys and values, as in :obj:`["gt.layers", "2"]`. (default: :obj:`()`)
    """
    if len(options) % 2:
        raise ValueError(f'options are pairs of a key and a value, given {len(options)} words: {" ".join(options)}')
    set_cfg(cfg)
    try:
        load_cfg(cfg, SimpleNamespace(cfg_file=str(cfg_file), opts=list(options)))
    except KeyError as error:
        raise ValueError(f'{cfg_file}: {error.args[0]}; {_known_keys(error.args[0])}') from error
    except AssertionError as error:
        # yacs asserts what it finds in a list of overrides; the message names the part of the key that is unknown.
        raise ValueError(f'unknown option: {error}; given {" ".join(options[::2])}') from error
    except AttributeError as error:  # yacs asks a list or a number for its items
        raise ValueError(f'{cfg_file}: got a YAML of no keys; accepted are keys and their values') from error
    except yaml.YAMLError as error:
        raise ValueError(f'{cfg_file} is not YAML: {" ".join(str(error).split())}') from error


def _known_keys(message: str) -> str:
    # yacs says "Non-existent config key: gt.layer"; the keys beside it are what its user is after.
    path, node = [], cfg
    for part in message.split()[-1].split('.')[:-1]:
        path.append(part)
        node = node[part]
    return f'known keys of {".".join(path) or "the top level"}: {", ".join(sorted(node))}'
