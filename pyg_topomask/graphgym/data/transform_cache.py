r"""Transformed datasets, cached in files next to the processed ones."""

from __future__ import annotations

import hashlib
import inspect
import pickle
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import torch
import torch_geometric
from torch import Tensor
from torch_geometric.data import Data, InMemoryDataset
from torch_geometric.graphgym.config import cfg
from torch_geometric.transforms import (
    AddLaplacianEigenvectorPE,
    AddRandomWalkPE,
    AddRemainingSelfLoops,
    AddSelfLoops,
    BaseTransform,
    Compose,
    NormalizeFeatures,
)

import pyg_topomask
from pyg_topomask.files import first_line, load_tensors, save_tensors
from pyg_topomask.runs.checkpoint import rng_state, set_rng_state
from pyg_topomask.transforms import (
    AddForest,
    AddGraphRandomFeatures,
    AddGridShape,
    AddNormals,
    AddRandomWalkKernel,
    AddSpanningForest,
    AddSVDEncoding,
    KNNGraph,
)

Collated = tuple[Data, dict[str, Any] | None]

NODE_SPLIT_KEYS = ('train_mask', 'val_mask', 'test_mask')

#: Transforms that read no split of the nodes, and neither remove nor reorder them.
LEAVES_NODES: tuple[type[BaseTransform], ...] = (
    AddForest,
    AddGraphRandomFeatures,
    AddGridShape,
    AddNormals,
    AddRandomWalkKernel,
    AddSVDEncoding,
    AddSpanningForest,
    KNNGraph,
    AddLaplacianEigenvectorPE,
    AddRandomWalkPE,
    AddRemainingSelfLoops,
    AddSelfLoops,
    NormalizeFeatures,
)


def _digest_of(value: Any) -> bytes:
    r"""A hash that is equal for equal values in any process, unlike pickles of tensors.

    Raises:
        TypeError: For values that cannot be identified in another process, such as lambda functions.
    """
    digest = hashlib.blake2b(_name_of(type(value)).encode(), digest_size=16)
    if isinstance(value, Tensor) and value.layout == torch.strided:
        value = value.detach().cpu()
        digest.update(f'{value.dtype}{tuple(value.shape)}'.encode())
        digest.update(value.contiguous().flatten().view(torch.uint8).numpy())
    elif isinstance(value, Tensor):
        digest.update(f'{value.layout}{tuple(value.shape)}'.encode())
        for tensor in _dense_tensors(value.detach()):
            digest.update(_digest_of(tensor))
    elif type(value) in (dict, defaultdict):
        for key in sorted(value, key=str):
            digest.update(_digest_of(str(key)) + _digest_of(value[key]))
    elif type(value) in (list, tuple):
        for item in value:
            digest.update(_digest_of(item))
    elif type(value) in (str, bool, int, float, bytes, type(None)):
        digest.update(repr(value).encode())
    elif hasattr(value, '__qualname__'):  # a class or a function
        digest.update(_name_of(value).encode())
    elif is_dataclass(value):  # by its fields, because cached values may come and go
        digest.update(_digest_of([getattr(value, field.name) for field in fields(value)]))
    else:
        digest.update(_digest_of_state(value))
    return digest.digest()


def _digest_of_state(value: Any) -> bytes:
    r"""The hash of the state that pickle would store."""
    state = value.__reduce_ex__(4)
    if isinstance(state, str):
        return _digest_of(state)
    if isinstance(value, (set, frozenset)):  # in any order
        return _digest_of([sorted(map(_digest_of, value)), state[2:]])
    return _digest_of([list(item) if isinstance(item, Iterator) else item for item in state])


def _name_of(value: Any) -> str:
    name = f'{value.__module__}.{value.__qualname__}'
    if '<' in name:
        raise TypeError(f'{name} has no name that another process could find it by')
    return name


def _source_of(transform: BaseTransform) -> str:
    r"""The source code of a user's transform, which may change."""
    if type(transform).__module__.partition('.')[0] in ('pyg_topomask', 'torch_geometric'):
        return ''
    try:
        return inspect.getsource(type(transform))
    except (OSError, TypeError):  # defined in a console
        return ''


def _dense_tensors(value: Tensor) -> tuple[Tensor, ...]:
    r"""The indices and the values of a sparse tensor."""
    if value.layout == torch.sparse_coo:
        return value._indices(), value._values()
    if value.layout in (torch.sparse_csr, torch.sparse_bsr):
        return value.crow_indices(), value.col_indices(), value.values()
    return value.ccol_indices(), value.row_indices(), value.values()


def _steps(transform: BaseTransform) -> list[BaseTransform]:
    return list(transform.transforms) if isinstance(transform, Compose) else [transform]


def leaves_nodes(transform: BaseTransform) -> bool:
    r"""Returns whether a transform is known to ignore splits of the nodes, and to neither remove nor reorder nodes. It can then
    be applied without the masks of the split.

    Args:
        transform (torch_geometric.transforms.BaseTransform): The transform, or a composition.
    """
    return all(type(step) in LEAVES_NODES for step in _steps(transform))


def cache_file(dataset: InMemoryDataset, transform: BaseTransform) -> Path | None:
    r"""Returns the file for a transformed dataset, or :obj:`None` if the dataset has no folder of processed files.

    Its name is a hash of the graphs, of the transforms with all arguments, of the versions of this package and of PyG, of the
    code of user-defined transforms, and of :obj:`cfg.seed` if transforms of PyG may draw random numbers. Transforms that cannot
    be hashed, such as lambda functions, have no file, and cause a warning.

    Args:
        dataset (torch_geometric.data.InMemoryDataset): The dataset, before it is transformed.
        transform (torch_geometric.transforms.BaseTransform): The transform.
    """
    folder = Path(dataset.processed_dir)
    if not folder.is_dir():
        return None
    steps = _steps(transform)
    uses_pyg = any(type(step).__module__.startswith('torch_geometric.') for step in steps)
    key = {
        'transforms': steps,
        'sources': [_source_of(step) for step in steps],
        'versions': (pyg_topomask.__version__, torch_geometric.__version__),
        'seed': cfg.seed if uses_pyg else None,
        'graphs': dataset._data.to_dict(),
        'slices': dataset.slices,
        'chosen': dataset._indices,
    }
    try:
        return folder / f'topomask-{_digest_of(key).hex()}.pt'
    except (TypeError, AttributeError, pickle.PicklingError, RecursionError) as error:
        warnings.warn(
            f'topomask.transforms: {transform} is applied anew each time, not stored: {first_line(error)}', stacklevel=2
        )
        return None


def _read(path: Path) -> Collated | None:
    try:
        stored = load_tensors(path)
        return Data.from_dict(stored['data']), stored['slices']
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        warnings.warn(f'topomask.transforms: {path} cannot be read and is made again: {error}', stacklevel=3)
        return None


def _write(path: Path, data: Data, slices: dict[str, Any] | None) -> None:
    try:
        save_tensors(path, {'data': data.to_dict(), 'slices': None if slices is None else dict(slices)})
    except OSError as error:
        warnings.warn(
            f'topomask.transforms: {path} could not be written, so it will be recreated next time: {error}', stacklevel=3
        )


def cached(path: Path | None, make: Callable[[], Collated]) -> Collated:
    r"""Returns a collated dataset from a file, or creates it and writes the file. The file stores no classes, so graphs of
    subclasses of :class:`~torch_geometric.data.Data` are created each time.

    The states of random number generators do not change, so that a run does not depend on the existence of the file.

    Args:
        path (Path, optional): The file, from :func:`cache_file`; :obj:`None` creates the dataset and writes nothing.
        make (callable): Returns the data and its slices.
    """
    stored = None if path is None else _read(path)
    if stored is not None:
        return stored
    state = rng_state()
    try:
        data, slices = make()
    finally:
        set_rng_state(state)
    if path is not None and type(data) is Data:
        _write(path, data, slices)
    return data, slices
