r"""The options of a recommendation run and how they are read from a YAML."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pyg_topomask.checks import check_whole

__all__ = ['default_config', 'is_recommendation', 'load_config']

#: What YAML takes for booleans.
_BOOLEANS = {'true': True, 'yes': True, 'on': True, 'false': False, 'no': False, 'off': False}


def default_config() -> Any:
    r"""Returns the options with their defaults, as a :obj:`yacs.config.CfgNode`."""
    from yacs.config import CfgNode

    cfg = CfgNode()
    cfg.out_dir = 'results'
    cfg.seed = 0

    own = cfg.recommend = CfgNode()
    own.dataset = 'lastfm'
    own.dir = ''
    own.files = CfgNode({'train': [], 'val': [], 'test': [], 'layout': 'lists'})  # for dataset: files
    own.val_ratio = 0.1
    own.split_seed = 0
    own.model = 'MGFormer'
    own.baselines = []
    own.embedding_dim = 64
    own.batch_size = 2048
    own.max_epoch = 300
    own.eval_period = 1
    own.patience = 10  # validations without a better one; 0: never stop early
    own.k = 20
    own.device = 'auto'
    own.progress = True

    own.BPRMF = CfgNode({'lr': 5e-3, 'weight_decay': 0.0, 'init_std': 0.1, 'l2': 1e-4})
    own.LightGCN = CfgNode({'lr': 5e-3, 'weight_decay': 0.0, 'init_std': 0.1, 'layers': 3, 'l2': 1e-4})
    own.DirectAU = CfgNode(
        {
            'lr': 1e-3,
            'weight_decay': 1e-6,
            'init_std': 0.01,
            'layers': 2,  # 0: matrix factorization
            'weight': 1.0,
            't': 2.0,
            'average': True,
        }
    )
    own.MGFormer = CfgNode(
        {
            'lr': 1e-2,
            'weight_decay': 1e-6,
            'svd_dim': 64,
            'heads': 1,
            'layers': 1,
            'feature_map': 'simplex',
            'mask': 'sin_degree',  # or adjacency, none
            'max_degree': 512,  # of sin_degree: the largest degree with an embedding of its own
            'residual': True,  # False as printed (Eq. 12), which learns far more slowly
            'dropout': 0.0,
            'sign_flip': False,  # of the structural encodings, in training
            'weight': 1.0,
            't': 1.0,
            'average': False,  # Eq. 13
        }
    )
    contrastive = {'lr': 5e-3, 'weight_decay': 0.0, 'init_std': 0.1, 'l2': 1e-4, 'temperature': 0.2}
    own.SimGCL = CfgNode({**contrastive, 'layers': 2, 'weight': 0.5, 'noise': 0.1})
    own.SGL = CfgNode({**contrastive, 'layers': 2, 'weight': 0.1, 'dropout': 0.1})
    return cfg


def is_recommendation(cfg_file: str | Path) -> bool:
    r"""Returns whether a YAML describes a recommendation run: whether it has the top-level key :obj:`recommend`.

    Args:
        cfg_file (str or Path): The file; :obj:`False` if it is absent or not a YAML, of which others tell.
    """
    try:
        given = _parse(Path(cfg_file).read_text(), str(cfg_file))
    except (OSError, ValueError):
        return False
    return isinstance(given, dict) and 'recommend' in given


def load_config(cfg_file: str | Path, options: Sequence[str] = ()) -> Any:
    r"""Returns the options of a YAML, with overrides.

    Values are read as what the default is, whatever YAML would take them for: :obj:`3` as a number with a fraction, or as the
    name of a folder.

    Args:
        cfg_file (str or Path): The file.
        options (list, optional): Alternating keys and values, as in :obj:`["recommend.model", "LightGCN"]`.
            (default: :obj:`()`)

    Raises:
        ValueError: If the file is no YAML of options, a key is unknown, or a value is of the wrong type or out of its range.
    """
    if len(options) % 2:
        raise ValueError(f'options: got {len(options)} words, {" ".join(options)}; accepted are pairs of a key and a value')
    cfg = default_config()
    given = _parse(Path(cfg_file).read_text(), str(cfg_file))
    if not isinstance(given, dict):
        raise ValueError(f'{cfg_file}: got a YAML of no keys; accepted are keys and their values')
    _merge(cfg, given)
    for key, word in zip(options[::2], options[1::2], strict=True):
        nested: Any = str(word)
        for part in reversed(key.split('.')):
            nested = {part: nested}
        _merge(cfg, nested)
    _check_values(cfg)
    return cfg


def _parse(text: str, source: str) -> Any:
    r"""Returns the lists and dictionaries of a YAML, with all else as it is written."""
    import yaml  # type: ignore[import-untyped]

    try:
        return yaml.load(text, Loader=yaml.BaseLoader)
    except yaml.YAMLError as error:
        raise ValueError(f'{source} is not YAML: {" ".join(str(error).split())}') from error


def _merge(known: Any, given: Mapping[str, Any], path: tuple[str, ...] = ()) -> None:
    r"""Replaces options by those given, as values of the same types."""
    for name, value in given.items():
        key = '.'.join((*path, name))
        if name not in known:
            place = f'in {".".join(path)}' if path else 'at the top level'
            raise ValueError(f'{key}: got an unknown option; accepted {place} are {", ".join(sorted(known))}')
        default = known[name]
        if not isinstance(default, dict):
            known[name] = _converted(key, value, type(default))
        elif isinstance(value, dict):
            _merge(default, value, (*path, name))
        else:
            raise ValueError(f'{key}: got {value!r}; accepted are keys and their values')


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
    raise ValueError(f'{key}: got {value!r}; accepted are values of type {kind.__name__}')


def _check_values(cfg: Any) -> None:
    own = cfg.recommend
    check_whole(0, seed=cfg.seed)
    for name, least in {'embedding_dim': 1, 'batch_size': 1, 'max_epoch': 1, 'eval_period': 1, 'k': 1, 'patience': 0}.items():
        check_whole(least, **{f'recommend.{name}': own[name]})
