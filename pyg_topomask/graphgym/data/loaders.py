r"""Data loaders whose order can be reproduced from any epoch on."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch.utils.data import BatchSampler, RandomSampler, Sampler, SequentialSampler
from torch_geometric.graphgym.config import cfg
from torch_geometric.graphgym.loader import create_loader
from torch_geometric.loader import DataLoader

from pyg_topomask.errors import ArgumentError
from pyg_topomask.runs.devices import num_processes, rank

#: What :obj:`train.sampler` and :obj:`val.sampler` may be. Others that GraphGym names miss an option, or end in an error.
SAMPLERS = ('full_batch', 'saint_edge', 'saint_node', 'saint_rw')


class EpochSampler(Sampler[int]):
    r"""A random order that is a function of the seed and the epoch alone.

    Args:
        size (int): Number of samples.
        seed (int): The seed.
    """

    def __init__(self, size: int, seed: int) -> None:
        self.size = size
        self.seed = seed
        self.epoch = 0

    def set_epoch(self, epoch: int) -> None:
        r"""Chooses the epoch; Lightning calls it.

        Args:
            epoch (int): The epoch.
        """
        self.epoch = epoch

    def __len__(self) -> int:
        return self.size

    def __iter__(self) -> Iterator[int]:
        # NumPy hashes the two together: with seed + epoch, neighboring seeds would share most of their orders.
        return iter(np.random.default_rng([self.seed, self.epoch]).permutation(self.size).tolist())


class SharedBatches(BatchSampler):
    r"""Batches that processes share: each takes its part of every batch, so that together they see what one process sees.

    Where the last batch has fewer samples than there are processes, it gets some of the one before.

    Args:
        sampler (torch.utils.data.Sampler): The order of the samples, equal in all processes.
        batch_size (int): The number of samples in a batch, of all processes together.

    Raises:
        ValueError: If there are too few samples for every process to have one in every batch.
    """

    def __init__(self, sampler: Any, batch_size: int) -> None:
        processes = num_processes()
        if processes > 1 and len(sampler) < processes:
            raise ArgumentError(
                'devices',
                f'{processes} processes, which share graphs, for {len(sampler)} graphs in a split of dataset '
                f'{cfg.dataset.name!r}',
                'one process, for a single graph',
                verb='is',
            )
        if processes > 1 and batch_size < 2 * processes:
            raise ArgumentError(
                'train.batch_size', f'{batch_size}, which {processes} processes share', f'numbers from {2 * processes}'
            )
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
            raise ArgumentError(
                'train.sampler',
                f'{cfg.train.sampler!r} for {num_processes()} processes',
                'full_batch for a data set of many graphs, or one process',
                verb='is',
            )
        return loader
    shuffled = isinstance(loader.sampler, RandomSampler)
    order = EpochSampler(len(loader.dataset), cfg.seed) if shuffled else SequentialSampler(loader.dataset)
    return DataLoader(
        loader.dataset,
        batch_sampler=SharedBatches(order, loader.batch_size),
        num_workers=loader.num_workers,
        persistent_workers=loader.persistent_workers,
        pin_memory=torch.cuda.is_available(),
        # Without its own generator a loader draws from the global one whenever it is iterated.
        generator=torch.Generator().manual_seed(cfg.seed),
    )


def create_loaders() -> list[Any]:
    r"""Creates GraphGym's loaders for training, validation and testing, with an :class:`EpochSampler` where the order
    is random, and with :class:`SharedBatches`. Loaders that sample subgraphs are left as they are.

    Raises:
        ValueError: If there is no validation split, or the data cannot be split among the processes.
        OSError: If the data is neither in its folder nor can be downloaded.
    """
    with warnings.catch_warnings():
        # GraphGym's way to store splits is what PyG warns about.
        warnings.filterwarnings('ignore', message='.*internal storage format.*')
        warnings.filterwarnings('ignore', message='topomask.redraw_period: ')  # is read by those who call this
        try:
            loaders = [_reproducible(loader) for loader in create_loader()]
        except OSError as error:
            wanted = f'{cfg.dataset.format} {cfg.dataset.name!r}'
            raise OSError(f'dataset.dir: got {cfg.dataset.dir!r}, where {wanted} could not be loaded: {error}') from error
    if len(loaders) < 2:
        raise ArgumentError(
            'dataset.name',
            f'{cfg.dataset.name!r} without a validation split, by which to choose the best epoch',
            'data sets that have one',
        )
    for group, loader in zip(('train', 'val'), loaders[:2], strict=True):
        sampler = cfg[group].sampler
        if sampler != 'full_batch' and type(loader) is DataLoader:
            warnings.warn(
                f'{group}.sampler: got {sampler!r}, which is for a single graph: graphs are taken whole', stacklevel=2
            )
    return loaders
