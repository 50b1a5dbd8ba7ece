r"""Data loaders with an order that is reproducible from any epoch."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from copy import copy
from typing import Any

import numpy as np
import torch
from torch.utils.data import BatchSampler, RandomSampler, Sampler, SequentialSampler
from torch_geometric.graphgym.config import cfg
from torch_geometric.graphgym.loader import create_loader
from torch_geometric.loader import DataLoader

from pyg_topomask.apps.datasets.bases import MASKS
from pyg_topomask.apps.runs.devices import num_processes, rank
from pyg_topomask.errors import ArgumentError, warn
from pyg_topomask.graphgym.data.edge_splits import size_of_edge_labels
from pyg_topomask.utils.checks import check_whole

#: Values of :obj:`train.sampler` and :obj:`val.sampler`. Other samplers of GraphGym lack an option or raise an error.
SAMPLERS = ('full_batch', 'saint_edge', 'saint_node', 'saint_rw')


class EpochSampler(Sampler[int]):
    r"""A random order that depends only on the seed and the epoch, which Lightning sets."""

    def __init__(self, size: int, seed: int) -> None:
        self.size = size
        self.seed = seed
        self.epoch = 0

    def set_epoch(self, epoch: int) -> None:
        self.epoch = epoch

    def __len__(self) -> int:
        return self.size

    def __iter__(self) -> Iterator[int]:
        # NumPy hashes both. With seed + epoch, neighboring seeds would share most of their orders.
        return iter(np.random.default_rng([self.seed, self.epoch]).permutation(self.size).tolist())


class SharedBatches(BatchSampler):
    r"""Batches shared by processes. Each process takes its part of every batch, so that together they see the batches of one
    process. Batches have :obj:`batch_size` samples over all processes, in an order that is equal in all of them. If the last
    batch has fewer samples than there are processes, it gets samples of the previous batch. Raises a :class:`ValueError` if
    there are too few samples for all processes to have one in every batch.
    """

    def __init__(self, sampler: Any, batch_size: int) -> None:
        processes = num_processes()
        if processes > 1 and len(sampler) < processes:
            graphs = f'{len(sampler)} graphs in a split of dataset {cfg.dataset.name!r}'
            given = f'{processes} processes, which share graphs, for {graphs}'
            raise ArgumentError('devices', given, 'one process, for a single graph')
        if processes > 1 and batch_size < 2 * processes:
            given = f'{batch_size}, which {processes} processes share'
            raise ArgumentError('train.batch_size', given, f'numbers from {2 * processes}')
        super().__init__(sampler, batch_size, drop_last=False)

    def __iter__(self) -> Iterator[list[int]]:
        batches = list(super().__iter__())
        missing = num_processes() - len(batches[-1]) if batches else 0
        if missing > 0:
            batches[-1] = batches[-2][-missing:] + batches[-1]
            batches[-2] = batches[-2][:-missing]
        for batch in batches:
            yield batch[rank() :: num_processes()]


def _reproducible(loader: Any) -> Any:
    if cfg.topomask.shard == 'graph':
        return loader
    if type(loader) is not DataLoader:
        if num_processes() > 1:
            given = f'{cfg.train.sampler!r} for {num_processes()} processes'
            raise ArgumentError('train.sampler', given, 'full_batch for a data set of many graphs, or one process')
        return loader
    shuffled = isinstance(loader.sampler, RandomSampler) and cfg.train.shuffle
    order = EpochSampler(len(loader.dataset), cfg.seed) if shuffled else SequentialSampler(loader.dataset)
    return DataLoader(
        loader.dataset,
        batch_sampler=SharedBatches(order, loader.batch_size),
        num_workers=loader.num_workers,
        persistent_workers=loader.persistent_workers,
        pin_memory=torch.cuda.is_available(),
        # Without a separate generator, every iteration of a loader would draw from the global one.
        generator=torch.Generator().manual_seed(cfg.seed),
    )


def _choose_split(loader: Any) -> bool:
    r"""Replaces masks of several splits, :obj:`[N, splits]`, by those of :obj:`dataset.split_index`, as GraphGPS does. Returns
    whether there are any.
    """
    data = (loader.data if loader.dataset is loader else getattr(loader.dataset, '_data', None)) or {}
    found = False
    for name in MASKS:
        mask = data.get(name)
        if isinstance(mask, torch.Tensor) and mask.dim() == 2:
            check_whole(0, mask.size(1) - 1, **{'dataset.split_index': cfg.dataset.split_index})
            data[name], loader.dataset._data_list, found = mask[:, cfg.dataset.split_index], None, True
    return found


def create_loaders() -> list[Any]:
    r"""Creates GraphGym's loaders for training, validation and testing, with an :class:`EpochSampler` if the order
    is random, and with :class:`SharedBatches`. Loaders that sample subgraphs do not change.

    Raises:
        ValueError: If there is no split or no validation split, or the data cannot be split among the processes.
        OSError: If the data is not in its folder and cannot be downloaded.
    """
    with warnings.catch_warnings():
        # PyG warns about the way in which GraphGym stores splits.
        warnings.filterwarnings('ignore', message='.*internal storage format.*')
        warnings.filterwarnings('ignore', message='topomask.redraw_period: ')  # callers read it
        try:
            loaders = [_reproducible(loader) for loader in create_loader()]
        except OSError as error:
            wanted = f'{cfg.dataset.format} {cfg.dataset.name!r}'
            raise OSError(f'dataset.dir: got {cfg.dataset.dir!r}, where {wanted} could not be loaded: {error}') from error
        except KeyError as error:
            if error.args != ('train_graph_index',):
                raise
            given = f'{cfg.dataset.format!r}, {cfg.dataset.name!r} without a split of its graphs'
            accepted = 'data sets with train_graph_index, val_graph_index and test_graph_index, such as those of PyG-TUDataset'
            raise ArgumentError('dataset.format, dataset.name', given, accepted) from error
    chosen = [_choose_split(loader) for loader in loaders]
    if cfg.dataset.split_index and not any(chosen):
        warn(f'dataset.split_index: got {cfg.dataset.split_index}, and the data set has no masks of several splits')
    data = getattr(loaders[0].dataset, '_data', None) or {}
    labels = data.get('y')
    if cfg.dataset.task_type == 'classification' and isinstance(labels, torch.Tensor):
        masks = [mask for name in MASKS if isinstance(mask := data.get(name), torch.Tensor) and mask.shape == labels.shape[:1]]
        ignored = labels.isnan()
        if masks and labels.numel() == labels.size(0):
            ignored |= (labels < 0) & ~torch.stack(masks).bool().any(0).view_as(labels)
        if bool(ignored.any()):  # GraphGym takes every NaN for a class, and what no mask selects
            cfg.share.dim_out = labels[~ignored].unique().numel()
    if (size := size_of_edge_labels(loaders[0].dataset)) is not None:
        cfg.share.dim_out = size  # GraphGym takes that of y
    if len(loaders) < 2:
        given = f'{cfg.dataset.name!r} without a validation split, by which to choose the best epoch'
        raise ArgumentError(
            'dataset.name', given, 'data sets that have one, such as train_mask, val_mask and test_mask of nodes'
        )
    for group, loader in zip(('train', 'val'), loaders[:2], strict=True):
        sampler = cfg[group].sampler
        if sampler != 'full_batch' and type(loader) is DataLoader:
            warn(f'{group}.sampler: got {sampler!r}, which is for a single graph. Whole graphs are used')
    return loaders


def shard_loaders(loaders: list[Any]) -> tuple[Any, list[Any]]:
    r"""Divides the nodes of the loaders' graph among the processes. Returns the sharded graph, and loaders of the shard of this
    process, with the graph as the attribute :obj:`sharded`. All processes must call this. The loaders are those of
    :func:`~pyg_topomask.graphgym.data.loaders.create_loaders`. Raises a :class:`ValueError` if they do not load a single graph,
    or the model does not support sharded graphs.
    """
    from pyg_topomask.distributed import ShardedGraph  # few runs need it

    single = all(type(loader) is DataLoader and len(loader.dataset) == 1 for loader in loaders)
    if not single or cfg.dataset.task != 'node':
        given = f"'graph' for dataset {cfg.dataset.name!r}, task {cfg.dataset.task!r}, train.sampler {cfg.train.sampler!r}"
        accepted = 'data sets of one graph with the task node and the sampler full_batch, and for others batch'
        raise ArgumentError('topomask.shard', given, accepted)
    if cfg.model.type != 'TopoGPSModel':
        raise ArgumentError('model.type', f'{cfg.model.type!r} for topomask.shard graph', 'TopoGPSModel')
    graph = ShardedGraph.from_data(loaders[0].dataset[0])
    shard: Any = copy(graph.data)
    shard.sharded = graph
    only: Any = [shard]  # torch uses it as a data set
    # Copies, because a model writes features to its batch.
    return graph, [torch.utils.data.DataLoader(only, batch_size=1, collate_fn=lambda shards: copy(shards[0])) for _ in loaders]
