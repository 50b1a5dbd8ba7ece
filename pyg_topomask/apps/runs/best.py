r"""The model of the best epoch of a run."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

from pyg_topomask.apps.runs.checkpoint import differences, load_checkpoint
from pyg_topomask.errors import ArgumentError

#: The checkpoint to resume a run from, and that of its best epoch.
LAST, BEST = 'checkpoints/last.pt', 'checkpoints/best.pt'


def load_best(folder: Path, config: str, free: Collection[str] = ()) -> dict[str, Any]:
    r"""Returns the checkpoint of the best epoch of a run, or of its last epoch if none was validated.

    Args:
        folder (Path): The folder of the run.
        config (str): The configuration of the run in YAML.
        free (collection of str, optional): Options, or groups of options, that may differ. (default: :obj:`()`)

    Raises:
        ValueError: If the checkpoint is missing, damaged, or of a run with another configuration.
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
