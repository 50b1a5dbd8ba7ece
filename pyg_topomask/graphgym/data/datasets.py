r"""The loader hook: our datasets, and :obj:`cfg.topomask.transforms` for every dataset."""

from __future__ import annotations

import sys
import warnings
from typing import Any

from torch_geometric.data import InMemoryDataset
from torch_geometric.graphgym import register
from torch_geometric.graphgym.config import cfg
from torch_geometric.graphgym.loader import load_ogb, load_pyg, set_dataset_attr
from torch_geometric.transforms import Compose
from yacs.config import CfgNode

from pyg_topomask.apps.datasets import DATASETS
from pyg_topomask.errors import ArgumentError, warn
from pyg_topomask.graphgym.configuration import defaults, option
from pyg_topomask.graphgym.data.pyg_datasets import PYG_DATASETS, load_pyg_dataset
from pyg_topomask.graphgym.data.transforms import PREPARES_FOR, apply_in_memory, build_transforms, reads_walks, walks_of
from pyg_topomask.graphgym.names.attentions import ATTENTIONS
from pyg_topomask.graphgym.names.configured_attention import layer_option, named_attentions
from pyg_topomask.graphgym.names.lookup import construct, lookup
from pyg_topomask.graphgym.names.models import MODELS
from pyg_topomask.transforms import AddGraphRandomFeatures

#: GraphGPS's loader raises on these. It has its own versions of the other formats of :obj:`PYG_DATASETS`.
UNKNOWN_TO_GRAPHGPS = ('PyG-LRGBDataset', 'PyG-ShapeNet', 'PyG-S3DIS', 'PyG-ModelNet')
FORMATS = ('topomask', 'PyG', *PYG_DATASETS, 'OGB')


def _load_topomask(name: str, dataset_dir: str) -> InMemoryDataset:
    kind = lookup('dataset.name, for dataset.format topomask', name, DATASETS)
    fixed = {'root': dataset_dir, 'split': None, 'transform': None, 'pre_transform': None}
    dataset = construct('topomask.dataset', kind, cfg.topomask.dataset, **fixed)
    for split, index in dataset.split_indices().items():
        set_dataset_attr(dataset, f'{split}_graph_index', index, len(index))
    return dataset


def _load_any(format: str, name: str, dataset_dir: str) -> Any:
    if format == 'topomask':
        return _load_topomask(name, dataset_dir)
    for key, loader in register.loader_dict.items():
        if key == 'custom_master_loader' and format in UNKNOWN_TO_GRAPHGPS:  # GraphGPS's
            continue
        if loader is not load_dataset and (dataset := loader(format, name, dataset_dir)) is not None:
            return dataset
    if (dataset := load_pyg_dataset(format, name, dataset_dir)) is not None:
        return dataset
    if format == 'PyG':
        return load_pyg(name, dataset_dir)
    if format == 'OGB':
        return load_ogb(name.replace('_', '-'), dataset_dir)
    raise ArgumentError('dataset.format', repr(format), ', '.join(FORMATS))


def _warn_of_unused_options() -> None:
    r"""Warns about unused options. A YAML may contain options of attentions that :obj:`gt.layer_type` does not name, so these
    cause a warning only on the command line. Other options cause a warning if they differ from their defaults."""
    transforms = [name for entry in cfg.topomask.transforms or [] for name in ([entry] if isinstance(entry, str) else entry)]
    layer, value = layer_option()
    used = named_attentions()
    used |= {walks_of(name)[0] for name in transforms if name in PREPARES_FOR and reads_walks()}
    used |= {'Masked'} if cfg.model.type in ('TopologicalViT', 'ViViT') else set()  # their mask is topomask.mask
    encoder = cfg.dataset.node_encoder_name if cfg.dataset.node_encoder else None
    encodes = 'SVDSE' in str(encoder).split('+') or 'AddSVDEncoding' in transforms
    layers = f'{layer} {value!r}'
    attentions = {f'topomask.{name}': name in used for name in ATTENTIONS}
    attentions |= {'topomask.mask': 'Masked' in used, 'gt.sparse': 'SparseAttention' in used}
    for path, is_read in attentions.items():
        given = [word for word in sys.argv if word == path or word.startswith(f'{path}.')]
        # A network of the user may read it.
        if given and not is_read and (layer != 'model.type' or value in MODELS):
            warn(f'{", ".join(given)}: got an option that nothing reads with {layers}')
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
            warn(f'{path}: got {", ".join(changed)}, which nothing reads with {where}')
    for name in transforms:
        if name in PREPARES_FOR and cfg.model.type in MODELS and (cfg.model.type, name) != ('GKAT', 'AddRandomWalkKernel'):
            warn(f'topomask.transforms: got {name}, whose walks nothing reads with {layers}')
    if cfg.topomask.redraw_period:
        warn(f'topomask.redraw_period: got {cfg.topomask.redraw_period}, which only python -m pyg_topomask train reads')


def _changed(value: Any, default: Any) -> list[str]:
    r"""Returns the options of a group that differ from their defaults, or the value of an option that does."""
    if not isinstance(value, CfgNode):
        return [] if value == default else [repr(value)]
    return [key for key, setting in value.items() if key not in default or setting != default[key]]


def load_dataset(format: str, name: str, dataset_dir: str) -> Any:
    r"""Loads a dataset, with another loader if it is not ours, and applies :obj:`cfg.topomask.transforms`.

    Args:
        format (str): :obj:`"topomask"`, or a format of another registered loader or of GraphGym.
        name (str): The name of the dataset.
        dataset_dir (str): The folder for files.
    """
    transforms = build_transforms(cfg.topomask.transforms or [])  # None if a YAML has the option without a value
    if not reads_walks():  # so that one YAML works for attentions with and without walks
        transforms = [transform for transform in transforms if not isinstance(transform, AddGraphRandomFeatures)]
    _warn_of_unused_options()
    with warnings.catch_warnings():
        # PyG warns about the way in which GraphGym stores splits.
        warnings.filterwarnings('ignore', message='.*internal storage format.*')
        dataset = _load_any(format, name, dataset_dir)
        if transforms:
            apply_in_memory(dataset, Compose(transforms))
    edge_attr, history = dataset._data.get('edge_attr'), dataset._data.get('history')
    cfg.share.dim_edge = 0 if edge_attr is None else 1 if edge_attr.dim() == 1 else edge_attr.size(1)
    cfg.share.dim_history = 0 if history is None else history[0].numel()
    return dataset


# GraphGym calls loaders in the order of registration, and GraphGPS's raises on unknown formats, so ours is first.
_loaders = {name: loader for name, loader in register.loader_dict.items() if name != 'topomask'}
register.loader_dict.clear()
register.loader_dict.update({'topomask': load_dataset, **_loaders})
