r"""The folder in which one run at a time writes."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

from pyg_topomask.errors import ArgumentError


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    r"""A block in which no other process writes to a folder, which is made if it is absent. Raises a :class:`ValueError` if
    another process trains there. File systems without locks are used without one.
    """
    folder.mkdir(parents=True, exist_ok=True)
    lock = FileLock(folder / '.lock', timeout=0)
    try:
        lock.acquire()
    except Timeout as error:
        accepted = 'folders where none does: wait for it, or give another --out'
        raise ArgumentError('out', f'{folder}, where another process trains', accepted) from error
    except (OSError, NotImplementedError):  # a file system without locks
        yield
        return
    try:
        yield
    finally:
        with suppress(OSError):
            lock.release()


def check_writable(folder: Path) -> None:
    r"""Raises a :class:`ValueError` unless a folder can be written to, or made."""
    folder = folder.absolute()
    nearest = next(path for path in (folder, *folder.parents) if path.exists())
    if not nearest.is_dir() or not os.access(nearest, os.W_OK | os.X_OK):
        given = f'{folder}, but {nearest} is {"not writable" if nearest.is_dir() else "a file"}'
        raise ArgumentError('out', given, 'folders that can be written to')


def clear_run(folder: Path, files: Sequence[str]) -> None:
    r"""Removes an earlier run from a folder, and its subfolders if nothing else lies in them.

    Args:
        folder (Path): The folder.
        files (sequence of str): Patterns of the files that a run writes, below the folder. They are removed in this order:
            the file to resume from comes first, so that what a killed removal leaves is not taken for a run.
    """
    paths = [path for pattern in files for path in sorted(folder.glob(pattern))]
    if paths:
        print(f'replacing the run in {folder}', file=sys.stderr)
    for path in paths:
        path.unlink()
    for subfolder in {path.parent for path in paths} - {folder}:
        with suppress(OSError):  # there is more in it
            subfolder.rmdir()
