r"""Files of a run that are either whole or absent, and the folder in which one run at a time writes."""

from __future__ import annotations

import os
import sys
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

from pyg_topomask.errors import ArgumentError

#: How names of files end that are being written.
UNFINISHED = '.pyg_topomask.tmp'


def write_atomically(path: Path, content: bytes) -> None:
    r"""Writes a file so that it holds either its old content or all of the new content at any moment. Its mode is that of any
    new file.

    Args:
        path (Path): The file.
        content (bytes): The content.
    """
    # The temporary file lies in the same folder because a rename is atomic only within one file system. The module tempfile
    # makes files that only their owner may read.
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


def new_file(name: str, path: str | Path) -> Path:
    r"""Returns where to write a file that an argument names: the target of a link is replaced, not the link.

    Args:
        name (str): The argument.
        path (str or Path): The file.

    Raises:
        ValueError: If its folder does not exist, or it is no file.
    """
    resolved = Path(path).resolve()
    if not resolved.parent.is_dir() or (resolved.exists() and not resolved.is_file()):
        raise ArgumentError(name, repr(str(path)), 'names of files in folders that exist')
    return resolved


def remove_unfinished(folder: Path) -> None:
    r"""Removes the files that a killed process was writing, which nothing ever reads.

    Args:
        folder (Path): The folder of a run, which may be absent.
    """
    for path in folder.rglob(f'.*{UNFINISHED}'):
        path.unlink(missing_ok=True)


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    r"""A block in which no other process writes to a folder, which is made if it is absent. File systems without locks are
    used without one.

    Args:
        folder (Path): The folder.

    Raises:
        ValueError: If another process trains there.
    """
    folder.mkdir(parents=True, exist_ok=True)
    lock = FileLock(folder / '.lock', timeout=0)
    try:
        lock.acquire()
    except Timeout as error:
        raise ArgumentError(
            'out', f'{folder}, where another process trains', 'folders where none does: wait for it, or give another --out'
        ) from error
    except (OSError, NotImplementedError):  # a file system without locks
        yield
        return
    try:
        yield
    finally:
        with suppress(OSError):
            lock.release()


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
