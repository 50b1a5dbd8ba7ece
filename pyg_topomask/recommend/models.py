r"""The recommenders that the runner knows by name: an encoder, an objective, and how they are optimized."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch_geometric.data import Data

from pyg_topomask.checks import check_whole
from pyg_topomask.graph import Graph
from pyg_topomask.nn.models.mgformer import MGFormer
from pyg_topomask.recommend.encoders import LightGCNEncoder, MFEncoder
from pyg_topomask.recommend.interactions import InteractionDataset
from pyg_topomask.recommend.objectives import (
    BPRObjective,
    DirectAUObjective,
    Objective,
    SGLObjective,
    SimGCLObjective,
)
from pyg_topomask.recommend.sampling import NegativeSampler
from pyg_topomask.transforms.add_svd_encoding import AddSVDEncoding

__all__ = ['RECOMMENDERS', 'Recommender', 'build_recommender']

Settings = Mapping[str, Any]

#: The masks of MGFormer by their names in a YAML, which cannot say None.
_MASKS = {'sin_degree': 'sin_degree', 'adjacency': 'adjacency', 'none': None}


@dataclass
class Recommender:
    r"""A model that is ready to be trained.

    Args:
        encoder (torch.nn.Module): What maps :obj:`data` to embeddings.
        objective (Objective): Its loss.
        data (Data or Graph): The graph of the training interactions, with the encodings that the encoder needs.
    """

    encoder: torch.nn.Module
    objective: Objective
    data: Data | Graph

    def to(self, device: torch.device) -> Recommender:
        r"""Moves everything to a device.

        Args:
            device (torch.device): The device.
        """
        return Recommender(self.encoder.to(device), self.objective.to(device), self.data.to(device))


def _sampler(dataset: InteractionDataset) -> NegativeSampler:
    return NegativeSampler(dataset.train, dataset.num_users, dataset.num_items)


def _bpr_mf(dataset: InteractionDataset, dim: int, own: Settings) -> Recommender:
    encoder = MFEncoder(dataset.num_users, dataset.num_items, dim, own['init_std'])
    return Recommender(encoder, BPRObjective(_sampler(dataset), own['l2']), dataset.data())


def _lightgcn(dataset: InteractionDataset, dim: int, own: Settings) -> Recommender:
    encoder = LightGCNEncoder(dataset.num_users, dataset.num_items, dim, own['layers'], False, own['init_std'])
    return Recommender(encoder, BPRObjective(_sampler(dataset), own['l2']), dataset.data())


def _directau(dataset: InteractionDataset, dim: int, own: Settings) -> Recommender:
    encoder: torch.nn.Module
    if own['layers']:
        encoder = LightGCNEncoder(dataset.num_users, dataset.num_items, dim, own['layers'], False, own['init_std'])
    else:
        encoder = MFEncoder(dataset.num_users, dataset.num_items, dim, own['init_std'])
    return Recommender(encoder, DirectAUObjective(own['weight'], own['t'], own['average']), dataset.data())


def _simgcl(dataset: InteractionDataset, dim: int, own: Settings) -> Recommender:
    encoder = LightGCNEncoder(dataset.num_users, dataset.num_items, dim, own['layers'], True, own['init_std'])
    sampler = _sampler(dataset)
    objective = SimGCLObjective(sampler, own['l2'], own['weight'], own['temperature'], own['noise'])
    return Recommender(encoder, objective, dataset.data())


def _sgl(dataset: InteractionDataset, dim: int, own: Settings) -> Recommender:
    encoder = LightGCNEncoder(dataset.num_users, dataset.num_items, dim, own['layers'], False, own['init_std'])
    sampler = _sampler(dataset)
    objective = SGLObjective(sampler, own['l2'], own['weight'], own['temperature'], own['dropout'])
    return Recommender(encoder, objective, dataset.data())


def _mgformer(dataset: InteractionDataset, dim: int, own: Settings) -> Recommender:
    if own['mask'] not in _MASKS:
        raise ValueError(f'recommend.MGFormer.mask: got {own["mask"]!r}; accepted are {", ".join(_MASKS)}')
    check_whole(0, **{'recommend.MGFormer.svd_dim': own['svd_dim']})
    data = dataset.data()
    if own['svd_dim']:
        data = AddSVDEncoding(own['svd_dim'])(data)
    encoder = MGFormer(
        dataset.num_users,
        dataset.num_items,
        embedding_dim=dim,
        svd_dim=own['svd_dim'],
        heads=own['heads'],
        layers=own['layers'],
        feature_map=own['feature_map'],
        mask=_MASKS[own['mask']],
        max_degree=own['max_degree'],
        residual=own['residual'],
        dropout=own['dropout'],
        sign_flip=own['sign_flip'],
    )
    objective = DirectAUObjective(own['weight'], own['t'], own['average'])
    # A graph, rather than data, is checked and its degrees are counted once, not in every step.
    return Recommender(encoder, objective, Graph.from_data(data))


#: Arguments that have another name in a YAML.
_OPTIONS = {'num_layers': 'layers', 'rank': 'svd_dim'}

#: What makes each model of a data set, the size of the embeddings and the model's own settings.
RECOMMENDERS: dict[str, Callable[[InteractionDataset, int, Settings], Recommender]] = {
    'BPRMF': _bpr_mf,
    'LightGCN': _lightgcn,
    'DirectAU': _directau,
    'SimGCL': _simgcl,
    'SGL': _sgl,
    'MGFormer': _mgformer,
}


def build_recommender(name: str, dataset: InteractionDataset, embedding_dim: int, settings: Settings) -> Recommender:
    r"""Builds a model.

    Args:
        name (str): One of :obj:`RECOMMENDERS`.
        dataset (InteractionDataset): The data set.
        embedding_dim (int): The size of the embeddings.
        settings (dict): The settings of the model, see :func:`~pyg_topomask.recommend.config.default_config`.

    Raises:
        ValueError: If the name is unknown or a setting is out of its range.
    """
    if name not in RECOMMENDERS:
        raise ValueError(f'recommend.model: got {name!r}; accepted are {", ".join(RECOMMENDERS)}')
    try:
        return RECOMMENDERS[name](dataset, embedding_dim, settings)
    except ValueError as error:
        argument, _, rest = str(error).partition(':')
        option = _OPTIONS.get(argument, argument)
        if option in settings:
            raise ValueError(f'recommend.{name}.{option}:{rest}') from error
        raise
