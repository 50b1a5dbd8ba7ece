r"""The loader hook: our datasets, and :obj:`cfg.topomask.transforms` for every dataset."""

from __future__ import annotations

import warnings
from typing import Any

from torch_geometric.data import InMemoryDataset
from torch_geometric.graphgym import register
from torch_geometric.graphgym.config import cfg
from torch_geometric.graphgym.loader import load_ogb, load_pyg
from torch_geometric.transforms import Compose

from pyg_topomask.apps.datasets import DATASETS
from pyg_topomask.errors import ArgumentError
from pyg_topomask.graphgym.data.downloads import explained_downloads
from pyg_topomask.graphgym.data.posenc import posenc_transforms
from pyg_topomask.graphgym.data.prepared_masks import log_bytes, prepares_masks
from pyg_topomask.graphgym.data.pyg_datasets import OGB_NAMES, PYG_DATASETS, load_pyg_dataset, set_splits
from pyg_topomask.graphgym.data.transforms import apply_in_memory, build_transforms, reads_walks
from pyg_topomask.graphgym.data.unused_options import warn_of_unused_options
from pyg_topomask.graphgym.names.elsewhere import remedy_of
from pyg_topomask.graphgym.names.lookup import construct, lookup
from pyg_topomask.transforms import AddGraphRandomFeatures
from pyg_topomask.utils.options import did_you_mean

#: GraphGPS's loader raises on these. It has its own versions of the other formats of :obj:`PYG_DATASETS`.
UNKNOWN_TO_GRAPHGPS = ('PyG-LRGBDataset', 'PyG-ShapeNet', 'PyG-S3DIS', 'PyG-ModelNet')
FORMATS = ('topomask', 'PyG', *PYG_DATASETS, 'OGB')
#: Names of GraphGym's own format :obj:`PyG`, beside those of TU data sets.
PYG_NAMES = (
    *('Cora', 'CiteSeer', 'PubMed', 'Karate', 'CoauthorCS', 'CoauthorPhysics', 'AmazonComputers', 'AmazonPhoto'),
    *('MNIST', 'PPI', 'QM7b'),
)


def _load_topomask(name: str, dataset_dir: str) -> InMemoryDataset:
    kind = lookup('dataset.name, for dataset.format topomask', name, DATASETS)
    fixed = {'root': dataset_dir, 'split': None, 'transform': None, 'pre_transform': None}
    dataset = construct('topomask.dataset', kind, cfg.topomask.dataset, **fixed)
    set_splits(dataset, dataset.split_indices())
    return dataset


def check_dataset(format: str, name: str) -> None:
    r"""Raises an error unless this package or GraphGym can load a data set, as far as the names say."""
    others = 'other data sets need a loader of your own, see register_loader of torch_geometric.graphgym'
    if format not in FORMATS:
        raise ArgumentError('dataset.format', repr(format), ', '.join(FORMATS), remedy_of(format) or others)
    if format == 'OGB' and name not in OGB_NAMES and not name.startswith(('ogbg', 'ogbl', 'ogbn')):
        accepted = f'{", ".join(OGB_NAMES)}, and names of OGB such as ogbg-molhiv'
        raise ArgumentError('dataset.name', repr(name), accepted, remedy_of(name.partition('-')[0]) or others)


def _load_any(format: str, name: str, dataset_dir: str) -> Any:
    if format == 'topomask':
        return _load_topomask(name, dataset_dir)
    for key, loader in register.loader_dict.items():
        if key == 'custom_master_loader' and format in UNKNOWN_TO_GRAPHGPS:  # GraphGPS's
            continue
        if loader is not load_dataset and (dataset := loader(format, name, dataset_dir)) is not None:
            return dataset
    check_dataset(format, name)
    if (dataset := load_pyg_dataset(format, name, dataset_dir)) is not None:
        return dataset
    if format == 'PyG':
        if name not in PYG_NAMES and not name.startswith('TU_'):
            raise ArgumentError('dataset.name', repr(name), ', '.join((*PYG_NAMES, 'TU_<name>')), did_you_mean(name, PYG_NAMES))
        return load_pyg(name, dataset_dir)
    return load_ogb(name.replace('_', '-'), dataset_dir)


def _mark_features(dataset: Any) -> None:
    r"""Gives edge features of one number, which an encoder reads, the shape :obj:`[E, 1]`, so that masks do not take them for
    edge weights, see :func:`~pyg_topomask.graphs.edges.edge_weights_of`.
    """
    edge_attr = dataset._data.get('edge_attr')
    if cfg.dataset.edge_encoder and edge_attr is not None and edge_attr.dim() == 1 and edge_attr.is_floating_point():
        dataset._data.edge_attr = edge_attr.unsqueeze(1)
        dataset._data_list = None


def load_dataset(format: str, name: str, dataset_dir: str) -> Any:
    r"""Loads a dataset, with another loader if it is not ours, and applies :obj:`cfg.topomask.transforms`, and
    stores what the masks of the configured attention prepare.

    The format is one of :obj:`FORMATS`, or that of another registered loader.
    """
    transforms = build_transforms(cfg.topomask.transforms or [])  # None if a YAML has the option without a value
    if not reads_walks():  # so that one YAML works for attentions with and without walks
        transforms = [transform for transform in transforms if not isinstance(transform, AddGraphRandomFeatures)]
    warn_of_unused_options()
    with warnings.catch_warnings():
        # PyG warns about the way in which GraphGym stores splits.
        warnings.filterwarnings('ignore', message='.*internal storage format.*')
        with explained_downloads(format, name, dataset_dir):
            dataset = _load_any(format, name, dataset_dir)
        _mark_features(dataset)
        # After the transforms of the user, of which some make the edges.
        transforms += [*posenc_transforms(), *(prepares := prepares_masks(dataset))]
        if transforms:
            apply_in_memory(dataset, Compose(transforms))
    for transform in prepares:
        log_bytes(dataset, transform)
    edge_attr, history = dataset._data.get('edge_attr'), dataset._data.get('history')
    cfg.share.dim_edge = 0 if edge_attr is None else 1 if edge_attr.dim() == 1 else edge_attr.size(1)
    cfg.share.dim_history = 0 if history is None else history[0].numel()
    return dataset


# GraphGym calls loaders in the order of registration, and GraphGPS's raises on unknown formats, so ours is first.
_loaders = {name: loader for name, loader in register.loader_dict.items() if name != 'topomask'}
register.loader_dict.clear()
register.loader_dict.update({'topomask': load_dataset, **_loaders})
