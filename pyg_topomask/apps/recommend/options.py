r"""The options of a recommendation run, read from a YAML."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pyg_topomask.errors import ArgumentError
from pyg_topomask.utils.checks import check_whole, checked_seed
from pyg_topomask.utils.configs import check_keys, check_overrides, find_config

#: The smallest numbers that options of the group :obj:`recommend` accept.
_LEAST = {'embedding_dim': 1, 'batch_size': 1, 'max_epoch': 1, 'eval_period': 1, 'k': 1, 'patience': 0}
_KEYS = 'keys and their values'
#: Booleans in YAML.
_BOOLEANS = {'true': True, 'yes': True, 'on': True, 'false': False, 'no': False, 'off': False}


def default_config() -> Any:
    r"""Returns the options with their defaults, as a :obj:`yacs.config.CfgNode`."""
    from yacs.config import CfgNode

    return CfgNode(
        {
            'out_dir': 'results',
            'seed': 0,
            'recommend': {
                'dataset': 'lastfm',
                'dir': '',
                # For dataset: files.
                'files': {'train': [], 'val': [], 'test': [], 'layout': 'lists', 'columns': [], 'min_rating': 0.0},
                'val_ratio': 0.1,
                'split_seed': 0,
                'model': 'MGFormer',
                'embedding_dim': 64,
                'batch_size': 2048,
                'max_epoch': 300,
                'eval_period': 1,
                'patience': 10,  # validations without improvement; 0: no early stopping
                'k': 20,
                'device': 'auto',
                'progress': True,
                'MGFormer': {
                    'lr': 1e-2,
                    'weight_decay': 1e-6,
                    'svd_dim': 64,
                    'heads': 1,
                    'layers': 1,
                    'feature_map': 'simplex',
                    'mask': 'sin_degree',  # or adjacency, none
                    'max_degree': 512,  # the largest degree with a separate embedding, for sin_degree
                    'residual': True,  # False is Eq. 12 as printed, which learns far more slowly
                    'dropout': 0.0,
                    'sign_flip': False,  # flips the signs of the structural encodings in training
                    'weight': 1.0,
                    't': 1.0,
                    'average': False,  # Eq. 13
                },
            },
        }
    )


def load_config(cfg_file: str | Path, options: Sequence[str] = ()) -> Any:
    r"""Returns the options of a YAML, with overrides.

    A value is converted to the type of its default. For example, :obj:`3` becomes a float if the default is a float, and a
    string if it is a string. The file may be the name of a configuration of this package. Options alternate between keys and
    values, as in :obj:`["recommend.k", "10"]`. Raises a :class:`ValueError` if the file is not a YAML of options, a key is
    unknown, or a value is of the wrong type or out of its range.
    """
    check_overrides(options)
    cfg = default_config()
    tree = _parse(find_config(cfg_file).read_text(encoding='utf-8'), str(cfg_file))
    if not isinstance(tree, dict):
        raise ArgumentError(str(cfg_file), 'a YAML of no keys', _KEYS)
    _merge(cfg, tree)
    for key, word in zip(options[::2], options[1::2], strict=True):
        nested: Any = str(word)
        for name in reversed(key.split('.')):
            nested = {name: nested}
        _merge(cfg, nested)
    if cfg.recommend.model != 'MGFormer':
        raise ArgumentError('recommend.model', repr(cfg.recommend.model), 'MGFormer')
    check_whole(0, 2**32 - 1, seed=cfg.seed)
    checked_seed(**{'recommend.split_seed': cfg.recommend.split_seed})
    for name, least in _LEAST.items():
        check_whole(least, **{f'recommend.{name}': cfg.recommend[name]})
    return cfg


def _parse(text: str, source: str) -> Any:
    r"""Returns the lists and dictionaries of a YAML, with all other values as strings."""
    import yaml  # type: ignore[import-untyped]

    try:
        return check_keys(text, source)
    except yaml.YAMLError as error:
        raise ValueError(f'{source} is not YAML: {" ".join(str(error).split())}') from error


def _merge(options: Any, values: Mapping[str, Any], path: tuple[str, ...] = ()) -> None:
    r"""Replaces options by values of the same types."""
    for name, value in values.items():
        key = '.'.join((*path, name))
        if name not in options:
            raise ArgumentError(key, 'an unknown option', ', '.join(sorted(options)))
        default = options[name]
        if not isinstance(default, dict):
            options[name] = _converted(key, value, type(default))
        elif isinstance(value, dict):
            _merge(default, value, (*path, name))
        else:
            raise ArgumentError(key, repr(value), _KEYS)


def _converted(key: str, value: Any, kind: type) -> Any:
    if kind is list:
        names = _parse(value, key) if isinstance(value, str) else value
        if isinstance(names, list) and all(isinstance(name, str) for name in names):
            return names
    elif isinstance(value, str):
        try:
            return _BOOLEANS[value.lower()] if kind is bool else kind(value)
        except (KeyError, ValueError):
            pass
    raise ArgumentError(key, repr(value), f'values of type {kind.__name__}')
