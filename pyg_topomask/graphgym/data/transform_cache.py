r"""Transformed datasets, cached in files next to the processed ones."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch_geometric
import torch_geometric.transforms as pyg_transforms
from torch_geometric.data import Data, InMemoryDataset
from torch_geometric.graphgym.config import cfg
from torch_geometric.transforms import BaseTransform

import pyg_topomask
import pyg_topomask.transforms as topomask_transforms
from pyg_topomask.apps.datasets.bases import SPLITS
from pyg_topomask.apps.runs.checkpoint import rng_state, set_rng_state
from pyg_topomask.errors import warn
from pyg_topomask.utils.digests import UNHASHABLE, digest_of, digest_of_transform, steps_of
from pyg_topomask.utils.files import first_line, load_tensors, save_tensors

Collated = tuple[Data, dict[str, Any] | None]

NODE_SPLIT_KEYS = tuple(f'{split}_mask' for split in SPLITS)

#: Transforms that read no split of the nodes, and neither remove nor reorder them.
LEAVES_NODES: tuple[type[BaseTransform], ...] = (
    topomask_transforms.AddForest,
    topomask_transforms.AddGraphRandomFeatures,
    topomask_transforms.AddGridShape,
    topomask_transforms.AddNormals,
    topomask_transforms.AddRandomWalkKernel,
    topomask_transforms.AddSVDEncoding,
    topomask_transforms.AddSpanningForest,
    topomask_transforms.KNNGraph,
    topomask_transforms.PrepareMasks,
    pyg_transforms.AddLaplacianEigenvectorPE,
    pyg_transforms.AddRandomWalkPE,
    pyg_transforms.AddRemainingSelfLoops,
    pyg_transforms.AddSelfLoops,
    pyg_transforms.NormalizeFeatures,
)


def leaves_nodes(transform: BaseTransform) -> bool:
    r"""Returns whether a transform, or a composition, is known to ignore splits of the nodes, and to neither remove nor reorder
    nodes. It can then be applied without the masks of the split.
    """
    return all(type(step) in LEAVES_NODES for step in steps_of(transform))


def cache_file(dataset: InMemoryDataset, transform: BaseTransform) -> Path | None:
    r"""Returns the file for a transformed dataset, or :obj:`None` if the dataset has no folder of processed files.

    Its name is a hash of the graphs, of the transforms with all arguments, of the versions of this package and of PyG, of the
    code of user-defined transforms, and of :obj:`cfg.seed` if transforms that are not of this package may draw random numbers.
    Transforms that cannot be hashed, such as lambda functions, have no file, and cause a warning.
    """
    folder = Path(dataset.processed_dir)
    if not folder.is_dir():
        return None
    with_seeds = all(type(step).__module__.startswith('pyg_topomask.') for step in steps_of(transform))
    rest = {
        'versions': (pyg_topomask.__version__, torch_geometric.__version__),
        'seed': None if with_seeds else cfg.seed,
        'graphs': dataset._data.to_dict(),
        'slices': dataset.slices,
        'chosen': dataset._indices,
    }
    try:
        return folder / f'topomask-{digest_of([digest_of_transform(transform), rest]).hex()}.pt'
    except UNHASHABLE as error:
        warn(f'topomask.transforms: {transform} is applied anew each time, not stored: {first_line(error)}')
        return None


def _read(path: Path) -> Collated | None:
    try:
        stored = load_tensors(path)
        return Data.from_dict(stored['data']), stored['slices']
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        warn(f'topomask.transforms: {path} cannot be read and is made again: {error}')
        return None


def _write(path: Path, data: Data, slices: dict[str, Any] | None) -> None:
    try:
        save_tensors(path, {'data': data.to_dict(), 'slices': None if slices is None else dict(slices)})
    except OSError as error:
        warn(f'topomask.transforms: {path} could not be written, so it will be recreated next time: {error}')


def cached(path: Path | None, make: Callable[[], Collated]) -> Collated:
    r"""Returns a collated dataset from a file, or creates it and writes the file. The file stores no classes, so graphs of
    subclasses of :class:`~torch_geometric.data.Data` are created each time.

    The states of random number generators do not change, so that a run does not depend on the existence of the file. Without a
    path, nothing is read or written.
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
