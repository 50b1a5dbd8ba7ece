r"""The loader hook: our datasets, :obj:`cfg.topomask.transforms` for every dataset, and warnings of options unread."""

from __future__ import annotations

import logging
import os
import re
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
import torch_geometric.datasets
from torch_geometric.data import InMemoryDataset
from torch_geometric.graphgym import register
from torch_geometric.graphgym.config import cfg
from torch_geometric.graphgym.loader import load_ogb, load_pyg
from torch_geometric.transforms import Compose
from yacs.config import CfgNode

from pyg_topomask.apps.datasets import DATASETS
from pyg_topomask.errors import ArgumentError, warn
from pyg_topomask.graphgym.configuration import defaults, option
from pyg_topomask.graphgym.data.edge_splits import draw_pairs, split_edges
from pyg_topomask.graphgym.data.pyg_datasets import OGB_NAMES, PYG_DATASETS, load_pyg_dataset, set_splits
from pyg_topomask.graphgym.data.transforms import PREPARES_FOR, apply_in_memory, build_transforms, reads_walks, walks_of
from pyg_topomask.graphgym.names.attentions import ATTENTIONS, build_configured_attention, layer_option, named_attentions
from pyg_topomask.graphgym.names.lookup import construct, lookup, remedy_of
from pyg_topomask.graphgym.names.masks import configured_tree
from pyg_topomask.graphgym.names.networks import MODELS
from pyg_topomask.graphgym.names.positional_encodings import posenc_transforms
from pyg_topomask.transforms import AddGraphRandomFeatures, PrepareMasks
from pyg_topomask.transforms.precomputed import masks_to_store
from pyg_topomask.utils.options import did_you_mean


def warn_of_unused_options() -> None:
    r"""Warns about options that nothing reads.

    A YAML may contain options of attentions that :obj:`gt.layer_type` does not name, so these cause a warning only on the
    command line. Other options cause a warning if they differ from their defaults.
    """
    entries = cfg.topomask.transforms or []
    transforms = [name for entry in entries for name in ([entry] if isinstance(entry, str) else entry)]
    walking = [name for name in transforms if name in PREPARES_FOR]
    layer, value = layer_option()
    layers = f'{layer} {value!r}'
    is_model, has_attention = cfg.model.type in MODELS, cfg.model.type not in (*MODELS, 'CustomGNN')
    if is_model or layer != 'model.type':  # a network of the user may read options of attentions
        _warn_of_attentions(walking, layers)

    encoder = cfg.dataset.node_encoder_name if cfg.dataset.node_encoder else None
    encodes = 'SVDSE' in str(encoder).split('+') or 'AddSVDEncoding' in transforms
    without_model = f'{layers}, whose arguments are topomask.model'
    readers = {
        'topomask.model': (is_model, f'model.type {cfg.model.type!r}'),
        'topomask.dataset': (cfg.dataset.format == 'topomask', f'dataset.format {cfg.dataset.format!r}'),
        'topomask.svd': (encodes, f'dataset.node_encoder_name {encoder!r} and without AddSVDEncoding'),
        'gt': (has_attention, without_model if is_model else layers),
        'model.graph_pooling': (not is_model, without_model),
        'dataset.node_encoder': (not is_model or cfg.model.type == 'GKAT', without_model),
        'posenc_EquivStableLapPE': (layer == 'gt.layer_type' or not cfg.posenc_EquivStableLapPE.enable, layers),
    }
    encoders = str(encoder).split('+')
    modules = [getattr(register.node_encoder_dict.get(name), '__module__', 'torch_geometric') for name in encoders]
    own = any(not module.startswith(('pyg_topomask', 'torch_geometric')) for module in modules)  # may read anything
    own |= cfg.model.type not in ('TopoGPSModel', 'CustomGNN')
    for name in ('LapPE', 'RWSE'):
        is_read = own or name in encoders or not cfg[f'posenc_{name}'].enable or 'posenc' in register.config_dict
        readers[f'posenc_{name}'] = (is_read, f'dataset.node_encoder_name {encoder!r}')
    before = defaults()
    for path, (is_read, where) in readers.items():
        changed = _changed(option(path), option(path, before))
        if changed and not is_read:
            warn(f'{path}: got {", ".join(changed)}, which nothing reads with {where}')
    for name in walking:
        if not has_attention and (cfg.model.type, name) != ('GKAT', 'AddRandomWalkKernel'):
            warn(f'topomask.transforms: got {name}, whose walks nothing reads with {layers}')
    if cfg.topomask.redraw_period:
        warn(f'topomask.redraw_period: got {cfg.topomask.redraw_period}, which only pyg-topomask train reads')


def _warn_of_attentions(walking: list[str], layers: str) -> None:
    used = named_attentions()
    if reads_walks():
        used |= {walks_of(name)[0] for name in walking}
    if cfg.model.type in ('TopologicalViT', 'ViViT'):
        used.add('Masked')  # their mask is topomask.mask
    groups = {f'topomask.{name}': name for name in ATTENTIONS}
    groups |= {'topomask.mask': 'Masked', 'gt.sparse': 'SparseAttention'}
    for path, name in groups.items():
        given = [word for word in sys.argv if word == path or word.startswith(f'{path}.')]
        if given and name not in used:
            warn(f'{", ".join(given)}: got an option that nothing reads with {layers}')


def _changed(value: Any, default: Any) -> list[str]:
    r"""Returns the options of a group that differ from their defaults, or the value of an option that does."""
    if not isinstance(value, CfgNode):
        return [] if value == default else [repr(value)]
    return [key for key, setting in value.items() if key not in default or setting != default[key]]


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


#: Words of attentions and masks whose masks have something to store.
STORING = {'Hop'}


def prepares_masks(dataset: Any) -> list[PrepareMasks]:
    r"""Returns the transform that stores what the masks of the configured attention prepare, as a list, which is empty if they
    have nothing to store, for a data set of one graph, which is prepared once anyway, or if :obj:`topomask.prepare_bytes` is 0.
    """
    most, names = cfg.topomask.prepare_bytes, named_attentions()
    if most == 0 or cfg.topomask.shard == 'graph' or not isinstance(dataset, InMemoryDataset) or len(dataset) < 2:
        return []
    if 'Masked' in names:
        names |= set(re.findall(r'\w+', str(configured_tree(cfg.topomask.Masked.mask))))
    if not names & STORING:
        return []
    with torch.random.fork_rng(devices=[]), warnings.catch_warnings():
        warnings.simplefilter('ignore')  # they warn when the model is created
        attention = build_configured_attention()
    masks = [] if attention is None else masks_to_store(attention)
    return [PrepareMasks(*masks, max_bytes=most)] if masks else []


def log_bytes(dataset: InMemoryDataset, transform: PrepareMasks) -> None:
    r"""Logs the bytes that a transform has stored for a graph, and how many graphs are too large."""
    for stored, mask in transform.stored():
        pairs, sizes = (dataset._data[name] for name in stored.names)
        too_large = int(((sizes[:, 0] > 0) & (sizes[:, 4] == 0)).sum())
        logging.info(
            '%s stores %.0f bytes a graph; %d of %d graphs are above topomask.prepare_bytes %d, and prepared in every batch',
            type(mask).__name__, pairs.nbytes / len(sizes), too_large, len(sizes), transform.max_bytes,
        )  # fmt: skip


#: GraphGPS's loader raises on these. It has its own versions of the other formats of :obj:`PYG_DATASETS`.
UNKNOWN_TO_GRAPHGPS = ('PyG-LRGBDataset', 'PyG-ShapeNet', 'PyG-S3DIS', 'PyG-ModelNet')
FORMATS = ('topomask', 'PyG', *PYG_DATASETS, 'OGB')
#: Names of GraphGym's own format :obj:`PyG`, beside those of TU data sets.
PYG_NAMES = (
    *('Cora', 'CiteSeer', 'PubMed', 'Karate', 'CoauthorCS', 'CoauthorPhysics', 'AmazonComputers', 'AmazonPhoto'),
    *('MNIST', 'PPI', 'QM7b'),
)


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
        kind = lookup('dataset.name, for dataset.format topomask', name, DATASETS)
        fixed = {'root': dataset_dir, 'split': None, 'transform': None, 'pre_transform': None}
        dataset = construct('topomask.dataset', kind, cfg.topomask.dataset, **fixed)
        set_splits(dataset, dataset.split_indices())
        return dataset
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
    r"""Loads a dataset, with another loader if it is not ours, splits its edges for :obj:`link_pred`, applies
    :obj:`cfg.topomask.transforms`, and stores what the masks of the configured attention prepare.

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
        if 'posenc' not in register.config_dict:  # a checkout of GraphGPS does both itself
            split_edges(dataset)  # before transforms, which must not see the edges that are to be predicted
            draw_pairs(dataset)
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
