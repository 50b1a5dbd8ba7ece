r"""The transforms :obj:`cfg.topomask.transforms`, applied once to every graph of a data set, and cached in files."""

from __future__ import annotations

import inspect
import random
import re
import warnings
from collections.abc import Callable, Iterable, Mapping
from itertools import chain, groupby, islice
from pathlib import Path
from types import NoneType
from typing import Any

import numpy as np
import torch
import torch_geometric
import torch_geometric.transforms as pyg_transforms
from joblib import Parallel, delayed  # type: ignore[import-untyped]
from torch_geometric.data import Data, InMemoryDataset
from torch_geometric.graphgym.config import cfg
from torch_geometric.transforms import BaseTransform, Compose

import pyg_topomask
import pyg_topomask.transforms as topomask_transforms
from pyg_topomask.apps.datasets.bases import SPLITS
from pyg_topomask.apps.runs.checkpoint import rng_state, set_rng_state
from pyg_topomask.apps.runs.run import bar_of_graphs
from pyg_topomask.errors import ArgumentError, warn
from pyg_topomask.graphgym.data.edge_splits import LABELLED_PAIRS, predicts_pairs
from pyg_topomask.graphgym.data.pyg_datasets import SPLIT_KEYS
from pyg_topomask.graphgym.names.attentions import (
    ATTENTIONS,
    EDGE_WEIGHTS,
    attention_options,
    build_configured_attention,
    configured_attention,
    named_attentions,
)
from pyg_topomask.graphgym.names.lookup import construct, decoded, lookup, named_options
from pyg_topomask.graphgym.names.masks import MASKS, configured_tree, first_options
from pyg_topomask.graphgym.names.positional_encodings import AddEigenvectors, AddReturnProbabilities
from pyg_topomask.graphs.graph import Graph
from pyg_topomask.masks import GRFMask, Mask, RWGNKMask
from pyg_topomask.masks.base.mask import ComposedMask
from pyg_topomask.transforms import AddGraphRandomFeatures
from pyg_topomask.transforms.base import GraphTransform
from pyg_topomask.utils.checks import check_whole
from pyg_topomask.utils.files import (
    UNHASHABLE,
    digest_of,
    digest_of_transform,
    first_line,
    load_tensors,
    save_tensors,
    steps_of,
)
from pyg_topomask.utils.random import seed_torch

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


def cached(path: Path | None, make: Callable[[], Collated]) -> Collated:
    r"""Returns a collated dataset from a file, or creates it and writes the file. The file stores no classes, so graphs of
    subclasses of :class:`~torch_geometric.data.Data` are created each time.

    The states of random number generators do not change, so that a run does not depend on the existence of the file. Without a
    path, nothing is read or written.
    """
    if path is not None:
        try:
            stored = load_tensors(path)
            return Data.from_dict(stored['data']), stored['slices']
        except FileNotFoundError:
            pass
        except (OSError, ValueError) as error:
            warn(f'topomask.transforms: {path} cannot be read and is made again: {error}')
    state = rng_state()
    try:
        data, slices = make()
    finally:
        set_rng_state(state)
    if path is not None and type(data) is Data:
        try:
            save_tensors(path, {'data': data.to_dict(), 'slices': None if slices is None else dict(slices)})
        except OSError as error:
            warn(f'topomask.transforms: {path} could not be written, so it will be recreated next time: {error}')
    return data, slices


#: Transforms that store walks, and the attention whose options they use if the configured attention has no walks.
PREPARES_FOR = {'AddGraphRandomFeatures': 'GRF', 'AddRandomWalkKernel': 'RWGNK'}
#: Attentions that use stored walks, and fixed settings of these walks.
WALKING: dict[str, dict[str, Any]] = {
    'GRF': {},
    'AsymmetricGRF': {},
    'GRFSoftmax': {},
    'RWGNK': {'importance': False, 'normalization': 'rw'},
}
#: Attentions and masks of this package that do not read stored walks. User-defined ones may read them.
WITHOUT_WALKS = {*ATTENTIONS, *MASKS} - {*WALKING}
#: What becomes of edge weights in encodings that are made for none.
WITHOUT_WEIGHTS: dict[type[BaseTransform], str] = {
    AddEigenvectors: 'they have no effect in posenc_LapPE and posenc_EquivStableLapPE, as in GraphGPS',
    AddReturnProbabilities: 'they have no effect in posenc_RWSE, as in GraphGPS',
    pyg_transforms.AddRandomWalkPE: (
        'AddRandomWalkPE of torch_geometric divides by their sums, but does not multiply by them, so that it gives no '
        'probabilities. posenc_RWSE.enable True gives those of walks without weights'
    ),
}
# The number of nodes of the graphs that are transformed at a time.
_CHUNK = 2**14
# Transforms that read the edges and the number of nodes alone, and what data sets have beside these and the node features.
_OF_EDGES = (
    topomask_transforms.AddForest,
    topomask_transforms.AddGraphRandomFeatures,
    topomask_transforms.AddGridShape,
    topomask_transforms.AddRandomWalkKernel,
    topomask_transforms.PrepareMasks,
    AddEigenvectors,
    AddReturnProbabilities,
)
_UNREAD = ('edge_attr', 'pos', 'y', 'z', 'smiles')
#: Masks that are not bound to check that they fit the data.
WALKING_OR_COMPOSED = (GRFMask, RWGNKMask, ComposedMask)


def walks_of(transform: str) -> tuple[str, dict[str, Any]]:
    r"""Returns the name and the options of the attention for which a transform stores walks. This is the configured attention
    if it, or a mask in it, uses walks. Otherwise, it is the attention that belongs to the transform.
    """
    attention, walker = configured_attention(), PREPARES_FOR[transform]
    if attention == 'Masked' and (given := first_options(configured_tree(cfg.topomask.Masked.mask), walker)):
        return attention, {**given, **WALKING[walker]}
    walker = attention if attention in WALKING else walker
    return walker, {**cfg.topomask[walker], **WALKING[walker]}


def reads_walks() -> bool:
    r"""Returns whether the configured model may read stored walks. A GPS model does so only if an attention in its layers does.
    Stitched walks and those along the attention are not stored, and a sharded graph stores none.
    """
    if cfg.topomask.shard == 'graph':
        return False
    if any(walks_of(transform)[1].get('stitch', 1) != 1 for transform in PREPARES_FOR):
        return False
    if cfg.model.type not in ('GPSModel', 'TopoGPSModel'):
        return cfg.model.type != 'GKAT' or not cfg.topomask.model.get('dynamic')
    options = {name: cfg.topomask.get(name, {}) for name in named_attentions()}
    names = {name for name, given in options.items() if not given.get(EDGE_WEIGHTS) and not given.get('dynamic')}
    if 'Masked' in names:
        names |= set(re.findall(r'\w+', str(configured_tree(cfg.topomask.Masked.mask))))
    return bool(names & {*ATTENTIONS, *MASKS} - WITHOUT_WALKS)


def build_transforms(entries: list[Any]) -> list[BaseTransform]:
    r"""Builds the transforms that :obj:`cfg.topomask.transforms` describes.

    An entry is the name of a transform of this package or of PyG, or ``{name: {argument: value}}``. Missing arguments of
    :obj:`AddGraphRandomFeatures` come from the options of the configured attention if it uses walks, of the first :obj:`GRF`
    with options in its composed mask, or of :obj:`topomask.GRF`.
    """
    transforms = []
    for entry in entries:
        if isinstance(entry, Mapping) and len(entry) == 1:
            ((name, arguments),) = entry.items()
        else:
            name, arguments = entry, None
        if not isinstance(name, str) or not isinstance(arguments, (Mapping, NoneType)):
            raise ArgumentError('topomask.transforms', repr(entry), 'names and {name: {argument: value}}')
        transforms.append(_build_transform(name, dict(arguments or {})))
    return transforms


def _build_transform(name: str, arguments: dict[str, Any]) -> BaseTransform:
    ours = {key: getattr(topomask_transforms, key) for key in topomask_transforms.__all__}
    theirs = {key: getattr(pyg_transforms, key) for key in pyg_transforms.__all__}
    # One list of transforms serves all words.
    counts_visits = name == 'AddGraphRandomFeatures' and configured_attention() == 'RWGNK'
    transform = lookup('topomask.transforms', 'AddRandomWalkKernel' if counts_visits else name, ours, theirs)
    if name not in PREPARES_FOR:
        rank = {'rank': cfg.topomask.svd.rank} if name == 'AddSVDEncoding' else {}
        return construct(f'topomask.transforms.{name}', transform, {**rank, **arguments})
    # The options of the attention, so that a YAML needs them only once.
    attention, options = walks_of(name)
    known = inspect.signature(transform).parameters
    given = {**{key: value for key, value in options.items() if key in known}, **arguments}
    if decoded(given).get('num_walks', 1) is None:
        exact = f'{name} with num_walks None of {attention}, which asks for the expectation that needs no walks'
        raise ArgumentError('topomask.transforms', exact, 'no such transform, or num_walks from 1')
    if arguments or attention == 'Masked':
        where = 'topomask.transforms' if arguments else 'topomask.mask'
        built = construct(f'{where}.{name}', transform, given)
    else:
        with named_options(f'topomask.{attention}'):
            built = transform(**given)
    if attention == configured_attention():
        _warn_of_contradictions(name, arguments, attention, options)
    return built


def _warn_of_contradictions(name: str, arguments: dict[str, Any], attention: str, options: dict[str, Any]) -> None:
    r"""Warns about options of the configured attention that differ from those of the stored walks."""
    before = attention_options(attention)
    for key, value in decoded(arguments).items():
        # Options of a composed mask are present only if they were given.
        if key in options and value != options[key] != before.get(key, value):
            warn(f'topomask.transforms, for {name}: got {key} {value!r}, where {attention} has {options[key]!r}')


def take(dataset: InMemoryDataset, keys: Iterable[str]) -> dict[str, tuple[Any, Any]]:
    r"""Removes attributes from the data of a dataset, and returns them with their slices."""
    taken = {}
    for key in keys:
        if key in dataset._data:
            taken[key] = (dataset._data[key], None if dataset.slices is None else dataset.slices[key])
            del dataset._data[key]
            if dataset.slices is not None:
                del dataset.slices[key]
    dataset._data_list = None
    return taken


def _put_back(dataset: InMemoryDataset, taken: dict[str, tuple[Any, Any]]) -> None:
    for key, (value, ends) in taken.items():
        dataset._data[key] = value
        if dataset.slices is not None:
            dataset.slices[key] = ends


def apply_in_memory(dataset: InMemoryDataset, transform: BaseTransform) -> None:
    r"""Applies a transform once to every graph and stores the result in the dataset, and in a file if the dataset has a folder
    of processed files, see :func:`~pyg_topomask.graphgym.data.transforms.cache_file`. All splits of the nodes
    share one file if the transforms do not change the nodes.
    """
    if not isinstance(dataset, InMemoryDataset):
        raise ArgumentError('topomask.transforms', f'a dataset of type {type(dataset).__name__}', 'datasets held in memory')
    _warn_of_weights(dataset._data, steps_of(transform))
    # The indices of splits belong to the dataset, not to a graph, and would break the slicing into graphs.
    taken = take(dataset, SPLIT_KEYS)
    if dataset._indices is None and leaves_nodes(transform):
        # All splits share one file.
        taken |= take(dataset, NODE_SPLIT_KEYS)
    pairs: dict[str, tuple[Any, Any]] = {}
    if predicts_pairs():
        if dataset._indices is not None:
            dataset.data, dataset.slices = dataset.collate([dataset.get(index) for index in dataset.indices()])
            dataset._indices = None
        # If there are as many pairs as edges, PyG takes them for attributes of edges.
        pairs, sizes = take(dataset, LABELLED_PAIRS), _sizes(dataset)

    def transformed() -> Any:
        _check_mask(dataset, steps_of(transform))
        # Graphs are not divided and collated with attributes that the transforms do not need.
        plain = type(dataset._data) is Data and dataset._indices is None and dataset.slices is not None and 'x' in dataset._data
        of_edges = plain and all(type(step) in _OF_EDGES for step in steps_of(transform))
        unread = take(dataset, _UNREAD if of_edges else ())
        try:
            data, slices = dataset.collate(list(_each_transformed(dataset, transform)))
        finally:
            _put_back(dataset, unread)
        for key, (value, ends) in unread.items():
            data[key], slices[key] = value, ends
        return data, slices

    data, slices = cached(cache_file(dataset, transform), transformed)
    dataset._indices = None
    dataset._data_list = None
    dataset.data, dataset.slices = data, slices
    if pairs and _sizes(dataset) != sizes:
        names = ', '.join(type(step).__name__ for step in steps_of(transform) if not isinstance(step, GraphTransform))
        accepted = 'transforms that neither remove nor add nodes'
        raise ArgumentError('topomask.transforms', f'{names} for graphs with labelled pairs of nodes', accepted)
    _put_back(dataset, taken | pairs)


def _sizes(dataset: InMemoryDataset) -> list[int]:
    r"""Returns the numbers of nodes of all graphs."""
    if dataset.slices is not None and 'x' in dataset.slices:
        sizes: list[int] = dataset.slices['x'].diff().tolist()
        return sizes
    return [int(dataset.get(index).num_nodes or 0) for index in dataset.indices()]


def _warn_of_weights(data: Any, transforms: list[BaseTransform]) -> None:
    weight = data.edge_weight if isinstance(data, Data) and 'edge_weight' in data else None
    if weight is not None and bool((weight != 1).any()):
        for kind, effect in WITHOUT_WEIGHTS.items():
            if any(type(transform) is kind for transform in transforms):
                warn(f'topomask.transforms: the graphs have edge_weight: {effect}')


def _check_mask(dataset: InMemoryDataset, transforms: list[BaseTransform]) -> None:
    r"""Binds the masks without walks of the configured attention to the first graph, so that missing data raises an error
    before walks from all nodes are sampled.
    """
    others = [transform for transform in transforms if not isinstance(transform, AddGraphRandomFeatures)]
    if len(others) == len(transforms) or len(dataset) == 0 or (others and len(dataset) == 1):
        return
    with torch.random.fork_rng(devices=[]), warnings.catch_warnings():
        warnings.simplefilter('ignore')  # they warn when the model is created
        modules = [] if (attention := build_configured_attention()) is None else attention.modules()
        first = dataset.indices()[0]
        graph = Graph.from_data(_applied(Compose(others), dataset.get(first), first))
        for module in modules:
            if isinstance(module, Mask) and not isinstance(module, WALKING_OR_COMPOSED):
                module(graph)


def _each_transformed(dataset: InMemoryDataset, transform: BaseTransform) -> Iterable[Data]:
    r"""Transforms chunks of graphs, in :obj:`cfg.topomask.num_workers` processes."""
    count, workers = len(dataset), cfg.topomask.num_workers
    check_whole(0, **{'topomask.num_workers': workers})
    # Random numbers depend on the graph, not on the process.
    seeds = ((cfg.seed + number * 0x9E3779B1) % 2**32 for number in range(count))
    jobs = zip(map(dataset.get, dataset.indices()), seeds, dataset.indices(), strict=True)
    # Few enough that the progress bar moves. Large graphs are alone.
    size = max(1, _CHUNK * count // max(dataset._data.num_nodes or 0, 1))
    chunks = iter(lambda: list(islice(jobs, size)), [])
    if workers <= 1 or count == 1:
        transformed = (_transformed(transform, chunk) for chunk in chunks)
    else:
        # Copies, because a slice of the dataset would be sent with the whole memory.
        copies = ([(data.clone(), *rest) for data, *rest in chunk] for chunk in chunks)
        transformed = Parallel(workers, return_as='generator')(delayed(_transformed)(transform, chunk) for chunk in copies)
    return bar_of_graphs(chain.from_iterable(transformed), 'transforms', count, cfg.topomask.progress)


def _transformed(transform: BaseTransform, jobs: list[tuple[Data, int, int]]) -> list[Data]:
    graphs, seeds, numbers = map(list, zip(*jobs, strict=True))
    runs = groupby(steps_of(transform), lambda step: isinstance(step, GraphTransform))
    for place, (at_once, steps) in enumerate(runs):
        run = Compose(list(steps))
        if at_once:
            for step in run.transforms:
                graphs = step.forward_many(graphs)
        else:
            for index, (seed, number) in enumerate(zip(seeds, numbers, strict=True)):
                seed = (seed + place // 2) % 2**32
                random.seed(seed)  # they may draw from global generators
                np.random.seed(seed)  # noqa: NPY002
                seed_torch(seed)
                graphs[index] = _applied(run, graphs[index], number)
    return graphs


def _applied(transform: Compose, data: Data, number: int) -> Data:
    r"""Transforms the graph of a number, which errors of other packages do not name."""
    num_nodes = data.num_nodes
    try:
        return transform(data)
    except (torch.OutOfMemoryError, ArgumentError):
        raise
    except (AssertionError, AttributeError, LookupError, RuntimeError, TypeError, ValueError) as error:
        names = ', '.join(type(step).__name__ for step in transform.transforms)
        given = f'{names} for graph {number}, of {num_nodes} nodes: {type(error).__name__}: {first_line(error)}'
        remedy = 'AddLaplacianEigenvectorPE needs more than k nodes' if 'AddLaplacianEigenvectorPE' in names else ''
        raise ArgumentError('topomask.transforms', given, 'transforms that fit every graph', remedy) from error
