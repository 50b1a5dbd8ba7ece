r"""Data loaders whose order can be reproduced from any epoch on."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch.utils.data import RandomSampler, Sampler
from torch_geometric.graphgym.config import cfg
from torch_geometric.graphgym.loader import create_loader
from torch_geometric.loader import DataLoader

__all__ = ['EpochSampler', 'create_loaders']


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


def _reproducible(loader: Any) -> Any:
    if type(loader) is not DataLoader:
        return loader
    shuffled = isinstance(loader.sampler, RandomSampler)
    return DataLoader(
        loader.dataset,
        batch_size=loader.batch_size,
        sampler=EpochSampler(len(loader.dataset), cfg.seed) if shuffled else None,
        num_workers=loader.num_workers,
        persistent_workers=loader.persistent_workers,
        pin_memory=torch.cuda.is_available(),
        # Without its own generator a loader draws from the global one whenever it is iterated.
        generator=torch.Generator().manual_seed(cfg.seed),
    )


def create_loaders() -> list[Any]:
    r"""Creates GraphGym's loaders for training, validation and testing, with an :class:`EpochSampler` where the order
    is random. Loaders that sample subgraphs are left as they are.
    """
    with warnings.catch_warnings():
        # GraphGym's way to store splits is what PyG warns about.
        warnings.filterwarnings('ignore', message='.*internal storage format.*')
        loaders = [_reproducible(loader) for loader in create_loader()]
    if len(loaders) < 2:
        raise ValueError(f'dataset {cfg.dataset.name!r} has no validation split, by which to choose the best epoch')
    return loaders
