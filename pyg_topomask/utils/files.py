r"""Files that are either whole or absent, and files of tensors that notice a changed bit."""

from __future__ import annotations

import hashlib
import io
import os
import uuid
from pathlib import Path
from typing import Any

import torch

from pyg_topomask.errors import ArgumentError

#: How names of files end that are being written.
UNFINISHED = '.pyg_topomask.tmp'
#: What stands before the digest at the end of a file.
MARK = b'pyg_topomask blake2b '
_DIGEST = 64
_END = len(MARK) + _DIGEST


def write_atomically(path: Path, content: bytes) -> None:
    r"""Writes a file so that it holds either its old content or all of the new content at any moment. Its mode is that of any
    new file. An :class:`OSError` names the file.
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
    except BaseException as error:
        temporary.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.errno is not None:  # a full disk names no file, or the temporary one
            raise type(error)(error.errno, error.strerror, str(path)) from error
        raise


def new_file(name: str, path: str | Path) -> Path:
    r"""Returns where to write the file that an argument names. The target of a link is replaced, not the link. Raises an error
    if its folder does not exist, or it is no file.
    """
    resolved = Path(path).resolve()
    if not resolved.parent.is_dir() or (resolved.exists() and not resolved.is_file()):
        raise ArgumentError(name, repr(str(path)), 'names of files in folders that exist')
    return resolved


def remove_unfinished(folder: Path) -> None:
    r"""Removes the files of a folder that a killed process was writing, which nothing ever reads. The folder may be absent."""
    for path in folder.rglob(f'.*{UNFINISHED}'):
        path.unlink(missing_ok=True)


def save_tensors(path: Path, value: Any) -> None:
    r"""Saves tensors, numbers, strings and containers of them with a digest of the file. :func:`torch.load` reads it too."""
    buffer = io.BytesIO()
    torch.save(value, buffer)
    # A zip file may end in a comment. The two bytes before it are its length.
    content = buffer.getvalue()[:-2] + _END.to_bytes(2, 'little')
    write_atomically(path, content + MARK + _digest(content))


def load_tensors(path: Path) -> Any:
    r"""Loads what :func:`save_tensors` saved onto the CPU. It runs no code that the file holds. Raises a :class:`ValueError`
    if it is another file, or a bit of it has changed.
    """
    stored = path.read_bytes()
    content, mark, digest = stored[:-_END], stored[-_END:-_DIGEST], stored[-_DIGEST:]
    if mark != MARK:
        raise ValueError('it has no digest at its end')
    if digest != _digest(content):
        raise ValueError('it does not match its digest')
    try:
        return torch.load(io.BytesIO(stored), map_location='cpu', weights_only=True)
    except Exception as error:  # a file that another program wrote with a digest
        raise ValueError(f'it holds more than tensors, numbers and strings: {first_line(error)}') from error


def digest_of_files(*paths: Path, salt: str = '') -> str:
    r"""Returns a digest of the contents of files and of :obj:`salt`, which changes if one of them does."""
    digest = hashlib.blake2b(salt.encode(), digest_size=8)
    for path in paths:
        digest.update(hashlib.blake2b(path.read_bytes()).digest())
    return digest.hexdigest()


def first_line(error: BaseException) -> str:
    r"""Returns the first line of the message of an error, or its name if it has none.

    Example:
        >>> first_line(RuntimeError('broken\nin many ways')), first_line(EOFError())
        ('broken', 'EOFError')
    """
    return (str(error) or type(error).__name__).splitlines()[0]


def _digest(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=_DIGEST // 2).hexdigest().encode()
