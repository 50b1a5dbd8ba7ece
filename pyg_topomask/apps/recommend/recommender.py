r"""Recommenders: an encoder of users and items with a graph and a loss."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from pyg_topomask.apps.recommend.interactions import InteractionDataset
from pyg_topomask.apps.recommend.losses import DirectAULoss
from pyg_topomask.errors import ArgumentError
from pyg_topomask.graphs.graph import Graph
from pyg_topomask.nn.models.mgformer import MGFormer
from pyg_topomask.transforms.add_svd_encoding import AddSVDEncoding
from pyg_topomask.utils.checks import check_choice, check_whole

#: The masks of MGFormer by their names in a YAML.
_MASKS = {'sin_degree': 'sin_degree', 'adjacency': 'adjacency', 'none': None}
#: Options that are arguments of MGFormer with the same name.
_ARGUMENTS = ('svd_dim', 'heads', 'layers', 'feature_map', 'max_degree', 'residual', 'dropout', 'sign_flip')


class Recommender:
    r"""An encoder of users and items, its graph, and a loss. A subclass defines :meth:`loss`.

    Args:
        encoder (torch.nn.Module): The model. :obj:`encoder(data)` returns the embeddings of users and items, of shapes
            :obj:`[num_users, d]` and :obj:`[num_items, d]`, whose inner products are the scores.
        data (Data or Graph): The graph of the training interactions.
    """

    def __init__(self, encoder: torch.nn.Module, data: Data | Graph) -> None:
        self.encoder = encoder
        self.data = data

    def to(self, device: torch.device) -> Recommender:
        r"""Moves the encoder and the graph to a device."""
        self.encoder, self.data = self.encoder.to(device), self.data.to(device)
        return self

    def start_epoch(self) -> None:
        r"""Resamples random state at the start of an epoch."""

    def loss(self, users: Tensor, items: Tensor) -> Tensor:
        r"""Returns the loss of a batch of training interactions.

        Args:
            users (torch.Tensor): The users, of shape :obj:`[n]`.
            items (torch.Tensor): Their items, of shape :obj:`[n]`.
        """
        raise NotImplementedError

    @torch.no_grad()
    def embed(self) -> tuple[Tensor, Tensor]:
        r"""Returns the embeddings of users and items, with the encoder in evaluation mode."""
        users, items = self.encoder.eval()(self.data)
        return users, items


class MGFormerRecommender(Recommender):
    r"""A :class:`~pyg_topomask.nn.models.MGFormer` with alignment and uniformity as the loss. A training step embeds only the
    nodes of its batch.

    Args:
        encoder (MGFormer): The model.
        data (Data or Graph): The graph of the training interactions. A :class:`~pyg_topomask.graphs.Graph` is checked once, and
            data in every step.
        loss (DirectAULoss): The loss of a batch of positive pairs.
    """

    encoder: MGFormer

    def __init__(self, encoder: MGFormer, data: Data | Graph, loss: DirectAULoss) -> None:
        super().__init__(encoder, data)
        self.criterion = loss

    def loss(self, users: Tensor, items: Tensor) -> Tensor:
        nodes = self.encoder(self.data, torch.cat([users, self.encoder.num_users + items]))
        return self.criterion(*nodes.chunk(2))


def build_recommender(dataset: InteractionDataset, options: Any) -> Recommender:
    r"""Builds the MGFormer that the group :obj:`recommend` of the options describes. Raises a :class:`ValueError` if one is out
    of its range.
    """
    settings = options.MGFormer
    try:
        check_choice(_MASKS, mask=settings.mask)
        check_whole(0, svd_dim=settings.svd_dim)
        data = dataset.data()
        if settings.svd_dim:
            data = AddSVDEncoding(settings.svd_dim)(data)
        arguments = {name: settings[name] for name in _ARGUMENTS}
        mask, sizes = _MASKS[settings.mask], (dataset.num_users, dataset.num_items)
        encoder = MGFormer(*sizes, embedding_dim=options.embedding_dim, mask=mask, **arguments)
        loss = DirectAULoss(settings.weight, settings.t, settings.average)
        return MGFormerRecommender(encoder, Graph.from_data(data), loss)
    except ArgumentError as error:
        option = 'svd_dim' if error.argument == 'rank' else error.argument  # the argument of AddSVDEncoding
        raise error.renamed(f'recommend.MGFormer.{option}') if option in settings else error from None
