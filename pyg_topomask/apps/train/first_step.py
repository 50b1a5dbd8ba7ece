r"""A trial of the first step of a run, before anything is written."""

from __future__ import annotations

import sysconfig
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch_geometric.graphgym.config import cfg
from torch_geometric.graphgym.imports import pl

from pyg_topomask.apps.datasets.file_dataset import SPLITS
from pyg_topomask.apps.train.data_checks import check_labels
from pyg_topomask.apps.train.labelled import labelled_loss
from pyg_topomask.errors import ArgumentError
from pyg_topomask.graphgym.configuration import option
from pyg_topomask.utils.files import first_line

#: Options that may not fit the data, which only the first step reveals.
SUSPECTS = ('dataset.task', 'gnn.head', 'model.loss_fun')
#: Further options of this kind, and the options that enable them.
ENCODERS = {'dataset.node_encoder_name': 'dataset.node_encoder', 'dataset.edge_encoder_name': 'dataset.edge_encoder'}


def try_first_step(network: torch.nn.Module, loaders: Sequence[Any], device: torch.device) -> None:
    r"""Moves a network to a device and computes the loss of the first batch of each split in evaluation mode, without changing
    random number generators. Raises a :class:`ValueError` if this fails for any reason except lack of memory.
    """
    network.to(device).eval()
    with pl.utilities.seed.isolate_rng(), torch.no_grad():
        for split, loader in zip(SPLITS, loaders, strict=False):
            _step(network, loader, split, device)
    network.train()


def _step(network: torch.nn.Module, loader: Any, split: str, device: torch.device) -> None:
    try:
        # Not by iterating over the loader, which would start its workers and draw from its generator.
        batch = loader.collate_fn([loader.dataset[index] for index in next(iter(loader.batch_sampler))]).to(device)
        batch.split = split
        one_graph = len(loader.dataset) == 1
        if cfg.gnn.head == 'inductive_node' and 'train_mask' in batch and one_graph:
            accepted = 'node, because inductive_node trains on all nodes of a graph'
            raise ArgumentError('gnn.head', "'inductive_node' for one graph with train_mask", accepted)
        pred, true = network(batch)
        mask = f'{split}_mask'
        # Samplers of GraphSAINT are their own data set. Another shard of a graph may have the nodes.
        whole = one_graph and loader.dataset is not loader and cfg.topomask.shard == 'batch'
        if whole and mask in batch and not bool(batch[mask].any()):
            raise ArgumentError(mask, 'no node', 'masks that select at least one')
        labelled_loss(pred, true)
        check_labels(true, split)
    except (torch.OutOfMemoryError, ArgumentError):
        raise
    except (AssertionError, AttributeError, LookupError, RuntimeError, TypeError, ValueError) as error:
        if str(error).startswith('Loss function'):
            accepted = 'cross_entropy, l1, mse, weighted_cross_entropy, and what losses take that are registered with GraphGym'
            raise ArgumentError('model.loss_fun', repr(cfg.model.loss_fun), accepted) from error
        suspects = [*SUSPECTS, *(name for name, enabled in ENCODERS.items() if option(enabled))]
        values = ', '.join(repr(option(path)) for path in suspects)
        end = f'{type(error).__name__}: {first_line(error)}{_place(error)}'
        given = f'{values}, with which the first {split} batch ends in {end}'
        several_graphs = len(loader.dataset) > 1 and loader.dataset is not loader
        remedy = 'for labels of nodes in several graphs: dataset.task graph gnn.head inductive_node'
        remedy = remedy if cfg.dataset.task == 'node' and several_graphs else ''
        raise ArgumentError(', '.join(suspects), given, 'what fits the data set', remedy) from error


def _place(error: BaseException) -> str:
    r"""Returns where an error passed the user's code, or an empty text if it did not."""
    libraries = (Path(sysconfig.get_path('stdlib')), Path(__file__).parents[2])
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if not {'site-packages', 'dist-packages'}.intersection(Path(frame.filename).parts)
        and not any(map(Path(frame.filename).is_relative_to, libraries))
        and not frame.filename.startswith('<')
    ]
    return f' ({frames[-1].filename}, line {frames[-1].lineno}, in {frames[-1].name})' if frames else ''
