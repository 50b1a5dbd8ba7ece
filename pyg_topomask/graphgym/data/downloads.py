r"""What to do about data that PyG cannot download."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch_geometric.datasets


@contextmanager
def explained_downloads(format: str, name: str, dataset_dir: str) -> Iterator[None]:
    r"""Adds to an :class:`OSError` from where the data come, and the folder in which their files belong. Removes the empty
    folders that the dataset has made for them.
    """
    existed, begin = Path(dataset_dir).exists(), time.time()
    try:
        yield
    except OSError as error:
        emptied = _remove_empty_folders(dataset_dir, begin - 1, with_root=not existed)
        source = _address(format, name)
        if not source:
            raise
        place = f', and its files belong in {emptied[0]}' if emptied else ''
        raise OSError(f'{error}; the data set comes from {source}{place}') from error


def _remove_empty_folders(root: str, begin: float, with_root: bool) -> list[str]:
    r"""Removes empty folders that were changed after a time, and returns them, the innermost first."""
    removed = []
    for folder, _, _ in os.walk(root, topdown=False):
        if (folder != root or with_root) and not os.listdir(folder) and os.stat(folder).st_mtime >= begin:
            os.rmdir(folder)
            removed.append(folder)
    return removed


def _address(format: str, name: str) -> str:
    r"""Returns the address that a dataset class of PyG has for a name, or all of the class, or an empty text."""
    kind = getattr(torch_geometric.datasets, format.removeprefix('PyG-'), None)
    given: list[Any] = [value for key, value in vars(kind).items() if 'url' in key] if isinstance(kind, type) else []
    of_names = {key.lower(): address for each in given if isinstance(each, dict) for key, address in each.items()}
    whole = ' or '.join(each for each in given if isinstance(each, str))
    return of_names.get(name.lower().removeprefix('modelnet'), whole)
