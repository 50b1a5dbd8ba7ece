r"""Files that are either whole or absent, files of tensors that notice a changed bit, and hashes of values."""

from __future__ import annotations

import hashlib
import inspect
import io
import os
import pickle
import sys
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from types import FunctionType, MethodType
from typing import Any

import torch
from torch import Tensor
from torch_geometric.transforms import Compose

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


# Packages whose code changes with their version alone.
_VERSIONED = ('builtins', 'collections', 'functools', 'numpy', 'pyg_topomask', 'torch', 'torch_geometric')
# The errors of values that cannot be hashed.
UNHASHABLE = (TypeError, AttributeError, pickle.PicklingError, RecursionError)


def digest_of(value: Any) -> bytes:
    r"""Returns a hash that is equal for equal values in any process, unlike pickles of tensors. It depends on the code of
    user-defined functions and classes. Raises a :class:`TypeError` for values that another process cannot identify, such as
    lambda functions.
    """
    digest = hashlib.blake2b(_code_of(type(value)), digest_size=16)
    if isinstance(value, Tensor) and value.layout == torch.strided:
        value = value.detach().cpu()
        digest.update(f'{value.dtype}{tuple(value.shape)}'.encode())
        digest.update(value.contiguous().flatten().view(torch.uint8).numpy())
    elif isinstance(value, Tensor):
        digest.update(f'{value.layout}{tuple(value.shape)}'.encode())
        for tensor in _dense_tensors(value.detach()):
            digest.update(digest_of(tensor))
    elif type(value) in (dict, defaultdict):
        for key in sorted(value, key=str):
            digest.update(digest_of(key) + digest_of(value[key]))
    elif type(value) in (list, tuple):
        for item in value:
            digest.update(digest_of(item))
    elif type(value) in (str, bool, int, float, bytes, type(None)):
        digest.update(repr(value).encode())
    elif isinstance(value, MethodType):
        digest.update(digest_of([value.__self__, value.__func__]))
    elif hasattr(value, '__qualname__'):  # a class or a function
        digest.update(_code_of(value))
    elif is_dataclass(value):  # by its fields, because cached values may come and go
        digest.update(digest_of([getattr(value, field.name) for field in fields(value)]))
    else:
        digest.update(_digest_of_state(value))
    return digest.digest()


def _digest_of_state(value: Any) -> bytes:
    r"""The hash of the state that pickle would store."""
    state = value.__reduce_ex__(4)
    if isinstance(state, str):
        return digest_of(state)
    if isinstance(value, (set, frozenset)):  # in any order
        return digest_of([sorted(map(digest_of, value)), state[2:]])
    return digest_of([list(item) if isinstance(item, Iterator) else item for item in state])


def _code_of(value: Any) -> bytes:
    r"""The name of a class or a function, and its source code, unless it belongs to a package in :obj:`_VERSIONED`."""
    name = f'{value.__module__}.{value.__qualname__}'
    if '<' in name or not _is_found_by_name(value):
        raise TypeError(f'{name} has no name that another process could find it by')
    kinds = inspect.getmro(value) if isinstance(value, type) else (value,)
    return ''.join([name, *map(_source_of, kinds)]).encode()


def _is_found_by_name(value: Any) -> bool:
    r"""Whether the name of a function is its own. A decorator may have given it that of another."""
    if not (isinstance(value, FunctionType) or hasattr(value, '__wrapped__')):
        return True
    named: Any = sys.modules.get(value.__module__)
    for part in value.__qualname__.split('.'):
        named = getattr(named, part, None)
    return getattr(named, '__func__', named) is value


def steps_of(transform: Any) -> list[Any]:
    r"""Returns the transforms of a composition, or a transform alone."""
    return list(transform.transforms) if isinstance(transform, Compose) else [transform]


def digest_of_transform(transform: Callable[[Any], Any]) -> bytes:
    r"""Returns the :func:`digest_of` a transform with all arguments, or of a composition, and of torch's default data type, in
    which transforms store numbers.
    """
    return digest_of([steps_of(transform), str(torch.get_default_dtype())])


def _source_of(value: Any) -> str:
    if str(value.__module__).partition('.')[0] in _VERSIONED:
        return ''
    try:
        return inspect.getsource(value)
    except (OSError, TypeError):  # defined in a console, or not in Python
        return ''


def _dense_tensors(value: Tensor) -> tuple[Tensor, ...]:
    r"""The indices and the values of a sparse tensor."""
    if value.layout == torch.sparse_coo:
        return value._indices(), value._values()
    if value.layout in (torch.sparse_csr, torch.sparse_bsr):
        return value.crow_indices(), value.col_indices(), value.values()
    return value.ccol_indices(), value.row_indices(), value.values()
