r"""The loader hook: our datasets, and :obj:`cfg.topomask.transforms` for every dataset."""

from __future__ import annotations

import inspect
import os.path as osp
import re
import sys
import warnings
from collections.abc import Iterable, Mapping
from itertools import starmap
from types import NoneType
from typing import Any

import torch_geometric.transforms as pyg_transforms
from joblib import Parallel, delayed  # type: ignore[import-untyped]
from torch_geometric import seed_everything
from torch_geometric.data import Data, InMemoryDataset
from torch_geometric.datasets import Planetoid
from torch_geometric.graphgym import register
from torch_geometric.graphgym.config import cfg
from torch_geometric.graphgym.loader import load_ogb, load_pyg, set_dataset_attr
from torch_geometric.transforms import BaseTransform, Compose
from tqdm import tqdm
from yacs.config import CfgNode

import pyg_topomask.transforms as topomask_transforms
from pyg_topomask.checks import check_whole
from pyg_topomask.datasets import DATASETS
from pyg_topomask.graphgym.arguments import construct, decoded
from pyg_topomask.graphgym.attentions import (
    ATTENTIONS,
    attention_options,
    configured_attention,
    configured_tree,
    layer_option,
)
from pyg_topomask.graphgym.composed_mask import MASKS, first_options
from pyg_topomask.graphgym.errors import named_remedies
from pyg_topomask.graphgym.models import MODELS, takes_mask
from pyg_topomask.graphgym.pyg_datasets import PYG_DATASETS, SPLIT_KEYS, load_pyg_dataset
from pyg_topomask.graphgym.registry import lookup
from pyg_topomask.graphgym.settings import defaults, option
from pyg_topomask.graphgym.transform_cache import NODE_SPLIT_KEYS, cache_file, cached, leaves_nodes
from pyg_topomask.transforms import AddGraphRandomFeatures

__all__ = ['apply_in_memory', 'build_transforms', 'load_dataset']

#: Transforms that store walks, and whose options they take where the configured attention does not walk.
PREPARES_FOR = {'AddGraphRandomFeatures': 'GRF', 'AddRandomWalkKernel': 'RWGNK'}
#: Attentions that use stored walks, and what they ask of them that is no option.
WALKING: dict[str, dict[str, Any]] = {
    'GRF': {},
    'AsymmetricGRF': {},
    'GRFSoftmax': {},
    'RWGNK': {'importance': False, 'normalization': 'rw'},
}
#: Attentions and masks of this package that read no stored walks. One of a user's own may read them.
WITHOUT_WALKS = {*ATTENTIONS, *MASKS} - {*WALKING}
#: GraphGPS's loader raises on these, and has versions of its own of the other formats of :obj:`PYG_DATASETS`.
UNKNOWN_TO_GRAPHGPS = ('PyG-LRGBDataset', 'PyG-ShapeNet', 'PyG-S3DIS', 'PyG-ModelNet')
FORMATS = ('topomask', 'PyG', 'PyG-Planetoid', 'OGB', *PYG_DATASETS)


def _load_planetoid(name: str, dataset_dir: str) -> Planetoid:
    # GraphGPS keeps these below `<dir>/Planetoid`; a folder with the raw files directly below `<dir>` works as well.
    direct = osp.isdir(osp.join(dataset_dir, name, 'raw'))
    return Planetoid(dataset_dir if direct else osp.join(dataset_dir, 'Planetoid'), name)


def _load_own(name: str, dataset_dir: str) -> InMemoryDataset:
    kind = lookup('dataset.name, for dataset.format topomask', name, DATASETS)
    fixed = {'root': dataset_dir, 'split': None, 'transform': None, 'pre_transform': None}
    dataset = construct(f'topomask.dataset, for {name}', kind, cfg.topomask.dataset, **fixed)
    for split, index in dataset.split_indices().items():
        set_dataset_attr(dataset, f'{split}_graph_index', index, len(index))
    return dataset


def _load_any(format: str, name: str, dataset_dir: str) -> Any:
    if format == 'topomask':
        return _load_own(name, dataset_dir)
    if format in UNKNOWN_TO_GRAPHGPS:
        return load_pyg_dataset(format, name, dataset_dir)
    for loader in register.loader_dict.values():
        if loader is not load_dataset and (dataset := loader(format, name, dataset_dir)) is not None:
            return dataset
    if (dataset := load_pyg_dataset(format, name, dataset_dir)) is not None:
        return dataset
    if format == 'PyG-Planetoid':
        return _load_planetoid(name, dataset_dir)
    if format == 'PyG':
        return load_pyg(name, dataset_dir)
    if format == 'OGB':
        return load_ogb(name.replace('_', '-'), dataset_dir)
    raise ValueError(f'dataset.format: got {format!r}; accepted are {", ".join(FORMATS)}')


def _walks_of(transform: str) -> tuple[str, dict[str, Any]]:
    r"""The attention whose options say which walks a transform stores, and these: the configured one where it walks, or its
    composed mask does, and else the one that the transform prepares for."""
    attention, walker = configured_attention(), PREPARES_FOR[transform]
    if attention == 'Masked' and (own := first_options(configured_tree(cfg.topomask.Masked.mask), walker)):
        return attention, {**own, **WALKING[walker]}
    walker = attention if attention in WALKING else walker
    return walker, {**cfg.topomask[walker], **WALKING[walker]}


def _options_of_attention(name: str, transform: type[BaseTransform]) -> dict[str, Any]:
    r"""The options of the attention that a transform prepares for, so that a YAML states them once."""
    if name == 'AddSVDEncoding':
        return {'rank': cfg.topomask.svd.rank}
    if name not in PREPARES_FOR:
        return {}
    known = inspect.signature(transform).parameters
    return {key: value for key, value in _walks_of(name)[1].items() if key in known}


def build_transforms(entries: list[Any]) -> list[BaseTransform]:
    r"""Builds the transforms that :obj:`cfg.topomask.transforms` describes.

    Args:
        entries (list): Names of transforms of this package or of PyG, or dictionaries with one entry,
            ``{name: {argument: value}}``. What is not given to :obj:`AddGraphRandomFeatures` is taken from the options of
            the configured attention where that walks, of the first :obj:`GRF` with options in its composed mask, or of
            :obj:`topomask.GRF`.

    Raises:
        ValueError: If an entry is of another form, names an unknown transform, or an argument does not fit.
    """
    ours = {name: getattr(topomask_transforms, name) for name in topomask_transforms.__all__}
    theirs = {name: getattr(pyg_transforms, name) for name in pyg_transforms.__all__}
    transforms = []
    for entry in entries:
        if isinstance(entry, Mapping) and len(entry) == 1:
            ((name, arguments),) = entry.items()
        else:
            name, arguments = entry, None
        if not isinstance(name, str) or not isinstance(arguments, (Mapping, NoneType)):
            raise ValueError(f'topomask.transforms: got {entry!r}; accepted are names and {{name: {{argument: value}}}}')
        transform = lookup('topomask.transforms', name, ours, theirs)
        given = {**_options_of_attention(name, transform), **(arguments or {})}
        if name in PREPARES_FOR and decoded(given).get('num_walks', 1) is None:
            raise ValueError(
                f'topomask.transforms: got {name} with num_walks None of {_walks_of(name)[0]}, which asks for the expectation '
                f'that needs no walks; accepted is to leave the transform out, or num_walks from 1'
            )
        where = 'topomask.transforms' if arguments or name not in PREPARES_FOR else f'topomask.{_walks_of(name)[0]}'
        transforms.append(construct(f'{where}, for {name}', transform, given))
        if name in PREPARES_FOR:
            _warn_of_contradictions(name, arguments or {})
    return transforms


def _warn_of_contradictions(transform: str, arguments: Mapping[str, Any]) -> None:
    r"""Warns of options of the configured attention that the walks which a transform stores for it do not have."""
    attention, options = _walks_of(transform)
    if attention != configured_attention():
        return
    before = attention_options(attention)
    for key, value in decoded(arguments).items():
        # Those of a composed mask are no options of the attention: they are there because they were given.
        if key in options and value != options[key] != before.get(key, value):
            warnings.warn(
                f'topomask.transforms, for {transform}: got {key} {value!r}, where {attention} has {options[key]!r}',
                stacklevel=3,
            )


def _named_attentions() -> set[str]:
    r"""Returns the names in the layers of the configured model, those of local layers among them."""
    layer, value = layer_option()
    # Forks of GraphGPS sum any number of attentions.
    return set(re.split(r'\+|__', value)) if layer == 'gt.layer_type' else {configured_attention()}


def _reads_walks() -> bool:
    r"""Whether the configured model may read stored walks. A GPS model does not if no attention in its layers does."""
    if cfg.model.type not in ('GPSModel', 'TopoGPSModel'):
        return True
    names = _named_attentions()
    if 'Masked' in names:
        names |= set(re.findall(r'\w+', str(configured_tree(cfg.topomask.Masked.mask))))
    return bool(names & {*ATTENTIONS, *MASKS} - WITHOUT_WALKS)


def _warn_of_unused_options() -> None:
    r"""Warns of options that nothing reads: those of other attentions if the command line gives them, for those in a YAML
    wait until :obj:`gt.layer_type` names their attention; of the rest all that differ from their defaults."""
    transforms = [name for entry in cfg.topomask.transforms or [] for name in ([entry] if isinstance(entry, str) else entry)]
    layer, value = layer_option()
    used = _named_attentions()
    used |= {_walks_of(name)[0] for name in transforms if name in PREPARES_FOR and _reads_walks()}
    used |= {'Masked'} if takes_mask(cfg.model.type) else set()
    encoder = cfg.dataset.node_encoder_name if cfg.dataset.node_encoder else None
    encodes = 'SVDSE' in str(encoder).split('+') or 'AddSVDEncoding' in transforms
    layers = f'{layer} {value!r}'
    attentions = {f'topomask.{name}': name in used for name in ATTENTIONS}
    attentions |= {'topomask.mask': 'Masked' in used, 'gt.sparse': 'SparseAttention' in used}
    for path, is_read in attentions.items():
        given = [word for word in sys.argv if word == path or word.startswith(f'{path}.')]
        if given and not is_read:
            warnings.warn(f'{", ".join(given)}: got an option that nothing reads with {layers}', stacklevel=3)
    readers: dict[str, tuple[bool, str]] = {}
    readers['topomask.model'] = (cfg.model.type in MODELS, f'model.type {cfg.model.type!r}')
    readers['topomask.dataset'] = (cfg.dataset.format == 'topomask', f'dataset.format {cfg.dataset.format!r}')
    readers['topomask.svd'] = (encodes, f'dataset.node_encoder_name {encoder!r} and without AddSVDEncoding')
    whose = f'{layers}, whose arguments are topomask.model'
    readers['gt'] = readers['model.graph_pooling'] = (cfg.model.type not in MODELS, whose)
    readers['dataset.node_encoder'] = (cfg.model.type not in MODELS or cfg.model.type == 'GKAT', whose)
    before = defaults()
    for path, (is_read, where) in readers.items():
        changed = _changed(option(path), option(path, before))
        if changed and not is_read:
            warnings.warn(f'{path}: got {", ".join(changed)}, which nothing reads with {where}', stacklevel=3)
    for name in transforms:
        if name in PREPARES_FOR and cfg.model.type in MODELS and (cfg.model.type, name) != ('GKAT', 'AddRandomWalkKernel'):
            warnings.warn(f'topomask.transforms: got {name}, whose walks nothing reads with {layers}', stacklevel=3)
    if cfg.topomask.redraw_period:
        warnings.warn(
            f'topomask.redraw_period: got {cfg.topomask.redraw_period}, which only python -m pyg_topomask train reads',
            stacklevel=3,
        )


def _changed(value: Any, default: Any) -> list[str]:
    r"""Returns the options of a group that differ from their defaults, or the value of an option that does."""
    if not isinstance(value, CfgNode):
        return [] if value == default else [repr(value)]
    return [key for key, own in value.items() if key not in default or own != default[key]]


def _taken(dataset: InMemoryDataset, keys: Iterable[str]) -> dict[str, tuple[Any, Any]]:
    r"""Takes attributes away from the data of a dataset, and returns them with their slices."""
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
    r"""Applies a transform once to every graph and stores the result in the dataset, and in a file next to its processed ones
    where it has such, see :func:`~pyg_topomask.graphgym.transform_cache.cache_file`. One file serves all splits of the nodes
    where the transforms are among those that leave nodes as they are.

    Args:
        dataset (torch_geometric.data.InMemoryDataset): The dataset, changed in place.
        transform (torch_geometric.transforms.BaseTransform): The transform.
    """
    if not isinstance(dataset, InMemoryDataset):
        raise ValueError(
            f'topomask.transforms: got a dataset of type {type(dataset).__name__}; accepted are datasets held in memory'
        )
    # The indices of the splits belong to the dataset, not to a graph: they would break the slicing into graphs.
    taken = _taken(dataset, SPLIT_KEYS)
    if dataset._indices is None and leaves_nodes(transform):
        # One file serves all splits.
        taken |= _taken(dataset, NODE_SPLIT_KEYS)

    def transformed() -> Any:
        return dataset.collate(list(_each_transformed(dataset, transform)))

    data, slices = cached(cache_file(dataset, transform), transformed)
    dataset._indices = None
    dataset._data_list = None
    dataset.data, dataset.slices = data, slices
    _put_back(dataset, taken)


def _each_transformed(dataset: InMemoryDataset, transform: BaseTransform) -> Iterable[Data]:
    r"""Transforms graph by graph, in :obj:`cfg.topomask.num_workers` processes."""
    count, workers = len(dataset), cfg.topomask.num_workers
    check_whole(0, **{'topomask.num_workers': workers})
    # Random numbers are those of the graph, whichever process draws them.
    seeds = ((cfg.seed + number * 0x9E3779B1) % 2**32 for number in range(count))
    jobs = ((transform, dataset.get(index), seed) for index, seed in zip(dataset.indices(), seeds, strict=True))
    if workers <= 1 or count == 1:
        graphs = starmap(_transformed, jobs)
    else:
        # Copies: a slice of the dataset would be sent with all of its memory.
        copies = ((transform, data.clone(), seed) for _, data, seed in jobs)
        graphs = Parallel(workers, return_as='generator')(delayed(_transformed)(*job) for job in copies)
    shown: Iterable[Data] = tqdm(graphs, 'transforms', count, unit='graph', disable=count == 1 or not cfg.topomask.progress)
    return shown


def _transformed(transform: BaseTransform, data: Data, seed: int) -> Data:
    seed_everything(seed)
    out: Data = transform(data)
    return out


def load_dataset(format: str, name: str, dataset_dir: str) -> Any:
    r"""Loads a dataset, by another loader where it is not ours, and applies :obj:`cfg.topomask.transforms`.

    Args:
        format (str): :obj:`"topomask"`, or a format that another registered loader or GraphGym knows.
        name (str): The name of the dataset.
        dataset_dir (str): The folder for files.
    """
    transforms = build_transforms(cfg.topomask.transforms or [])  # None where a YAML names the option and nothing else
    if not _reads_walks():  # so that one YAML serves attentions with and without walks
        transforms = [transform for transform in transforms if not isinstance(transform, AddGraphRandomFeatures)]
    _warn_of_unused_options()
    with warnings.catch_warnings():
        # GraphGym's way to store splits is what PyG warns about.
        warnings.filterwarnings('ignore', message='.*internal storage format.*')
        dataset = _load_any(format, name, dataset_dir)
        if transforms:
            with named_remedies():
                apply_in_memory(dataset, Compose(transforms))
    edge_attr, history = dataset._data.get('edge_attr'), dataset._data.get('history')
    cfg.share.dim_edge = 0 if edge_attr is None else 1 if edge_attr.dim() == 1 else edge_attr.size(1)
    cfg.share.dim_history = 0 if history is None else history[0].numel()
    return dataset


# GraphGym asks loaders in the order of registration, and GraphGPS's raises on what it does not know: ours goes first.
_others = {name: loader for name, loader in register.loader_dict.items() if name != 'topomask'}
register.loader_dict.clear()
register.loader_dict.update({'topomask': load_dataset, **_others})
