r"""The options of a recommendation run and how they are read from a YAML."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

__all__ = ['default_config', 'is_recommendation', 'load_config']


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
            'lr': 1e-3,
            'weight_decay': 1e-6,
            'svd_dim': 64,
            'heads': 1,
            'layers': 1,
            'feature_map': 'simplex',
            'mask': 'sin_degree',  # or adjacency, none
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
        with open(cfg_file) as file:
            return any(line.startswith('recommend:') for line in file)
    except (OSError, UnicodeDecodeError):
        return False


def load_config(cfg_file: str | Path, options: Sequence[str] = ()) -> Any:
    r"""Returns the options of a YAML, with overrides.

    Args:
        cfg_file (str or Path): The file.
        options (list, optional): Alternating keys and values, as in :obj:`["recommend.model", "LightGCN"]`.
            (default: :obj:`()`)

    Raises:
        ValueError: If a key is unknown or a value is of the wrong kind.
    """
    import yaml  # type: ignore[import-untyped]

    if len(options) % 2:
        raise ValueError(f'options are pairs of a key and a value, given {len(options)} words: {" ".join(options)}')
    cfg = default_config()
    try:
        cfg.merge_from_file(str(cfg_file))
        for key in options[::2]:
            _check_key(cfg, key)
        # yacs reads overrides as Python; a list of names is one in YAML alone.
        values = [yaml.safe_load(word) if word.startswith('[') else word for word in options[1::2]]
        cfg.merge_from_list([word for pair in zip(options[::2], values, strict=True) for word in pair])
    except KeyError as error:
        _check_key(cfg, error.args[0].split()[-1])
        raise
    except AttributeError as error:  # yacs asks a list or a number for its items
        raise ValueError(f'{cfg_file}: got a YAML of no keys; accepted are keys and their values') from error
    except yaml.YAMLError as error:
        raise ValueError(f'{cfg_file} is not YAML: {" ".join(str(error).split())}') from error
    _check_values(cfg)
    return cfg


def _check_key(cfg: Any, key: str) -> None:
    node = cfg
    *path, _ = parts = key.split('.')
    for depth, part in enumerate(parts):
        if not isinstance(node, dict) or part not in node:
            known = ', '.join(sorted(node)) if isinstance(node, dict) else 'none'
            raise ValueError(f'unknown option: {key}; known keys of {".".join(path[:depth]) or "the top level"}: {known}')
        node = node[part]


def _check_values(cfg: Any) -> None:
    own = cfg.recommend
    for name in ('embedding_dim', 'batch_size', 'max_epoch', 'eval_period', 'k'):
        if own[name] < 1:
            raise ValueError(f'recommend.{name}: got {own[name]}; accepted are integers of at least 1')
    if own.patience < 0:
        raise ValueError(f'recommend.patience: got {own.patience}; accepted are integers of at least 0')
