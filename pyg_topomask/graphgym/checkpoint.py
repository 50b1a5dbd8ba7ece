r"""Checkpoints: files that are either whole or absent, and hold what an identical continuation needs."""

from __future__ import annotations

import io
import os
import random
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
import yaml  # type: ignore[import-untyped]

from pyg_topomask.graphgym.errors import first_line

__all__ = [
    'SCHEMA_VERSION',
    'check_same_experiment',
    'check_same_model',
    'load_best',
    'load_checkpoint',
    'remove_unfinished',
    'rng_state',
    'save_checkpoint',
    'set_rng_state',
    'write_atomically',
]

SCHEMA_VERSION = 2

#: How names of files end that are being written.
UNFINISHED = '.pyg_topomask.tmp'

#: Options that say where and how long to run rather than what; a run may be resumed with others.
FREE_OPTIONS = {
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
}
#: Groups of options that a model, its masks and its inputs are made from.
MODEL_GROUPS = ('dataset', 'gnn', 'gt', 'model', 'topomask')


def write_atomically(path: Path, content: bytes) -> None:
    r"""Writes a file so that at any moment, whatever happens, it holds either its old content or all of the new one. Who may
    read it is what it is for any new file.

    Args:
        path (Path): The file.
        content (bytes): What to write.
    """
    # The temporary file lies in the same folder because a rename is atomic only within one file system.
    # Not by tempfile, whose files only their owner may read.
    temporary = path.with_name(f'.{path.name}.{uuid.uuid4().hex}{UNFINISHED}')
    try:
        with open(temporary, 'xb') as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def remove_unfinished(folder: Path) -> None:
    r"""Removes the files that a killed process was writing when it ended, which nothing ever reads.

    Args:
        folder (Path): The folder of a run, which may be absent.
    """
    for path in folder.rglob(f'.*{UNFINISHED}'):
        path.unlink(missing_ok=True)


def save_checkpoint(path: Path, state: dict[str, Any]) -> None:
    r"""Saves a checkpoint, stamped with the version of its schema.

    Args:
        path (Path): The file.
        state (dict): Tensors, numbers, strings and containers of them.
    """
    buffer = io.BytesIO()
    torch.save({'schema_version': SCHEMA_VERSION, **state}, buffer)
    write_atomically(path, buffer.getvalue())


def load_checkpoint(path: Path) -> dict[str, Any]:
    r"""Loads a checkpoint onto the CPU.

    Args:
        path (Path): The file.

    Raises:
        ValueError: If the file is no checkpoint, not a whole one, or one of another schema.
    """
    try:
        state = torch.load(path, map_location='cpu', weights_only=True)
    except (FileNotFoundError, PermissionError):
        raise
    except Exception as error:  # broken files make torch fail in many ways
        raise ValueError(f'{path} is not a checkpoint of pyg_topomask, or not a whole one: {first_line(error)}') from error
    version = state.get('schema_version') if isinstance(state, dict) else None
    if version != SCHEMA_VERSION:
        raise ValueError(f'{path} has checkpoint schema_version {version!r}; this version reads {SCHEMA_VERSION}')
    return dict(state)


def rng_state() -> dict[str, Any]:
    r"""Returns the states of the random number generators of Python, NumPy and PyTorch."""
    # NumPy's global generator is a legacy, and what many datasets and transforms draw from.
    _, keys, position, has_gauss, gauss = np.random.get_state()  # noqa: NPY002
    return {
        'python': random.getstate(),
        'numpy': (torch.from_numpy(np.asarray(keys).astype(np.int64)), int(position), int(has_gauss), float(gauss)),
        'torch': torch.get_rng_state(),
        'cuda': torch.cuda.get_rng_state_all() if torch.cuda.is_available() else [],
    }


def set_rng_state(state: dict[str, Any]) -> None:
    r"""Restores what :func:`rng_state` returned.

    Args:
        state (dict): The states.
    """
    version, internal, gauss = state['python']
    random.setstate((version, tuple(internal), gauss))
    keys, *rest = state['numpy']
    np.random.set_state(('MT19937', keys.numpy().astype(np.uint32), *rest))  # noqa: NPY002
    torch.set_rng_state(state['torch'])
    # A run saved elsewhere may have seen another number of devices.
    if state['cuda'] and len(state['cuda']) == torch.cuda.device_count():
        torch.cuda.set_rng_state_all(state['cuda'])


def _flatten(node: dict[str, Any], prefix: str = '') -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in node.items():
        flat.update(_flatten(value, f'{prefix}{key}.') if isinstance(value, dict) else {f'{prefix}{key}': value})
    return flat


def _differences(saved: str, current: str) -> dict[str, str]:
    r"""What differs between two configurations in YAML, in words, by the option; those that are free do not count."""
    before, after = _flatten(yaml.safe_load(saved) or {}), _flatten(yaml.safe_load(current) or {})
    return {
        key: f'{key} was {before.get(key)!r} and is {after.get(key)!r}'
        for key in sorted(before.keys() | after.keys())
        if key not in FREE_OPTIONS and before.get(key) != after.get(key)
    }


def check_same_experiment(path: Path, saved: str, current: str) -> None:
    r"""Raises an error that lists the differences if a checkpoint belongs to another configuration.

    Args:
        path (Path): The checkpoint, for the error message.
        saved (str): Its configuration in YAML.
        current (str): The configuration to continue with, in YAML.

    Raises:
        ValueError: If an option differs that says what is trained rather than where or how long.
    """
    changed = _differences(saved, current).values()
    if changed:
        raise ValueError(f'cannot resume from {path}, which has another configuration: {"; ".join(changed)}')


def check_same_model(path: Path, saved: str, current: str) -> None:
    r"""Raises an error that lists the differences if the model in a checkpoint was made from other options, also where its
    weights would fit: those of many attentions have equal names and shapes.

    Args:
        path (Path): The checkpoint, for the error message.
        saved (str): Its configuration in YAML.
        current (str): The configuration of the model, in YAML.

    Raises:
        ValueError: If an option of the data set, the model, its attention or its mask differs.
    """
    differences = _differences(saved, current)
    changed = [text for key, text in differences.items() if key.partition('.')[0] in MODEL_GROUPS]
    if changed:
        raise ValueError(f'checkpoint: got {path}, which belongs to another model: {"; ".join(changed)}')


def load_best(path: Path, best: Any, config: str, bound: Callable[[str], str] = str) -> dict[str, Any]:
    r"""Loads the checkpoint of the best epoch of a run, if no other run has replaced it: not every file system has locks.

    Args:
        path (Path): The checkpoint.
        best (dict, optional): The row of that epoch in the history of the run.
        config (str): The configuration of the run in YAML.
        bound (callable, optional): Takes from a configuration what may differ when a run is resumed. (default: :obj:`str`)

    Raises:
        ValueError: If the checkpoint is that of another run.
    """
    checkpoint = load_checkpoint(path)
    # As text, in which NaN equals NaN.
    if _differences(bound(checkpoint['config']), bound(config)) or repr(checkpoint.get('best')) != repr(best):
        raise ValueError(f'{path}: got the model of another run; accepted is that of the best epoch of this one: train again')
    return checkpoint
