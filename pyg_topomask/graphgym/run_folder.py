r"""The folder of a run: one process at a time trains in it, and only what runs write is removed from it."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from torch_geometric.graphgym.config import cfg

from pyg_topomask.graphgym.distributed import rank

try:
    import fcntl
except ImportError:  # where there is no POSIX
    fcntl = None  # type: ignore[assignment]

__all__ = ['clear_run', 'locked', 'run_name']


def run_name(cfg_file: str | Path) -> str:
    r"""Returns the name of the folder for what a configuration makes: that of its YAML, and :obj:`cfg.name_tag`.

    Args:
        cfg_file (str or Path): The YAML, which has been loaded.
    """
    return Path(cfg_file).stem + (f'-{cfg.name_tag}' if cfg.name_tag else '')


@contextmanager
def locked(run_dir: Path) -> Iterator[None]:
    r"""A block in which no other run writes to a folder, which is made where it is absent; without effect where the system
    or the file system has no locks, and in all processes of a run but the first.

    Args:
        run_dir (Path): The folder.

    Raises:
        ValueError: If another process trains there.
    """
    run_dir.mkdir(parents=True, exist_ok=True)
    if fcntl is None or rank() > 0:
        yield
        return
    # The file stays: who removed it could remove that of the next run.
    with open(run_dir / '.lock', 'w') as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise ValueError(
                f'out: got {run_dir}, where another process trains; accepted are folders where none does: wait for it, or '
                f'give another --out'
            ) from error
        except OSError:
            pass  # a file system without locks
        try:
            yield
        finally:
            # Not only by closing: workers of data loaders have the file open as well.
            with suppress(OSError):
                fcntl.flock(file, fcntl.LOCK_UN)


def clear_run(run_dir: Path, files: Sequence[str]) -> None:
    r"""Removes an earlier run from a folder, and its subfolders where nothing else lies in them.

    Args:
        run_dir (Path): The folder.
        files (list): Patterns of the files that a run writes, below the folder. They are removed in this order: what a run is
            resumed from goes first, so that what is left by who is killed meanwhile is not taken for a run.
    """
    found = [path for pattern in files for path in sorted(run_dir.glob(pattern))]
    if found:
        print(f'replacing the run in {run_dir}', file=sys.stderr)
    for path in found:
        path.unlink()
    for folder in {path.parent for path in found} - {run_dir}:
        with suppress(OSError):  # there is more in it
            folder.rmdir()
