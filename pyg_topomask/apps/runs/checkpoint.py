r"""Checkpoints, with all state that an identical continuation needs."""

from __future__ import annotations

import random
from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np
import torch

from pyg_topomask.errors import ArgumentError
from pyg_topomask.utils.configs import parse_yaml
from pyg_topomask.utils.files import load_tensors, save_tensors

SCHEMA_VERSION = 4
#: The checkpoint to resume a run from, and that of its best epoch.
LAST, BEST = 'checkpoints/last.pt', 'checkpoints/best.pt'


def save_checkpoint(path: Path, state: dict[str, Any]) -> None:
    r"""Saves tensors, numbers, strings and containers of them, with the version of their schema."""
    save_tensors(path, {'schema_version': SCHEMA_VERSION, **state})


def load_checkpoint(path: Path) -> dict[str, Any]:
    r"""Loads a checkpoint onto the CPU. Raises a :class:`ValueError` if the file is no checkpoint, a bit of it has changed, or
    it has another schema.
    """
    try:
        state = load_tensors(path)
    except ValueError as error:
        raise ValueError(f'{path} is no checkpoint of pyg_topomask, or is damaged: {error}') from error
    version = state.get('schema_version') if isinstance(state, dict) else None
    if version != SCHEMA_VERSION:
        raise ValueError(f'{path} has checkpoint schema_version {version!r}; this version reads {SCHEMA_VERSION}')
    return dict(state)


def load_best(folder: Path, config: str, free: Collection[str] = ()) -> dict[str, Any]:
    r"""Returns the checkpoint of the best epoch of the run in a folder, or of its last epoch if none was validated. Raises a
    :class:`ValueError` if it is missing, damaged, or of a run with another configuration, see :func:`differences`.
    """
    best = folder / BEST
    path = best if best.exists() else folder / LAST
    try:
        checkpoint = load_checkpoint(path)
    except FileNotFoundError as error:
        raise not_the_best(best, 'no file') from error
    except ValueError as error:
        raise not_the_best(path, f'a file that cannot be read: {error}') from error
    if path != best and checkpoint['best'] is not None:
        raise not_the_best(best, 'no file')
    if changed := '; '.join(differences(checkpoint['config'], config, free).values()):
        raise not_the_best(path, f'the model of another run: {changed}')
    return checkpoint


def not_the_best(path: Path, given: str) -> ArgumentError:
    r"""The error about a checkpoint that is not that of the best epoch."""
    remedy = 'restore it, or train again, without --resume or train.auto_resume'
    return ArgumentError(str(path), given, 'the model of the best epoch of this run', remedy)


def rng_state() -> dict[str, Any]:
    r"""Returns the states of the random number generators of Python, NumPy and PyTorch."""
    # NumPy's global generator is legacy, but many datasets and transforms use it.
    _, keys, position, has_gauss, gauss = np.random.get_state()  # noqa: NPY002
    return {
        'python': random.getstate(),
        'numpy': (torch.from_numpy(np.asarray(keys).astype(np.int64)), int(position), int(has_gauss), float(gauss)),
        'torch': torch.get_rng_state(),
        'cuda': torch.cuda.get_rng_state_all() if torch.cuda.is_available() else [],
    }


def set_rng_state(state: dict[str, Any]) -> None:
    r"""Restores the states returned by :func:`rng_state`."""
    version, internal, gauss = state['python']
    random.setstate((version, tuple(internal), gauss))
    keys, *rest = state['numpy']
    np.random.set_state(('MT19937', keys.numpy().astype(np.uint32), *rest))  # noqa: NPY002
    torch.set_rng_state(state['torch'])
    # A run saved elsewhere may have had a different number of devices.
    if state['cuda'] and len(state['cuda']) == torch.cuda.device_count():
        torch.cuda.set_rng_state_all(state['cuda'])


def differences(saved: str, current: str, free: Collection[str] = ()) -> dict[str, str]:
    r"""Describes the differences between two configurations in YAML by option, except in the options, or groups of options,
    that are free.

    Example:
        >>> differences('{seed: 0, out: {dir: a}, size: 2}', '{seed: 1, out: {dir: b}, size: 2}', free=['out'])
        {'seed': 'seed was 0 and is 1'}
    """
    if saved == current:  # reading them takes longer than an epoch on few graphs
        return {}
    before, after = _options(parse_yaml(saved), free), _options(parse_yaml(current), free)
    return {
        key: f'{key} was {before.get(key)!r} and is {after.get(key)!r}'
        for key in sorted(before.keys() | after.keys())
        if before.get(key) != after.get(key)
    }


def _options(node: Any, free: Collection[str], path: str = '') -> dict[str, Any]:
    r"""Returns the values of all options below a node by their paths."""
    if path and path in free:
        return {}
    if not isinstance(node, dict):
        return {path: node} if path else {}
    return {
        option: value
        for key, child in node.items()
        for option, value in _options(child, free, f'{path}.{key}' if path else key).items()
    }
