r"""What is minimized: losses of an encoder on a batch of interactions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from pyg_topomask.checks import check_above_zero, check_not_negative
from pyg_topomask.nn.models.mgformer import MGFormer
from pyg_topomask.recommend.encoders import Encoder, LightGCNEncoder, MFEncoder
from pyg_topomask.recommend.interactions import bipartite_data
from pyg_topomask.recommend.losses import BPRLoss, DirectAULoss, info_nce
from pyg_topomask.recommend.sampling import NegativeSampler

__all__ = ['BPRObjective', 'DirectAUObjective', 'Objective', 'SGLObjective', 'SimGCLObjective']


class Objective(torch.nn.Module):
    r"""The loss of an encoder: :obj:`objective(encoder, data, users, items)`."""

    def start_epoch(self, data: Data) -> None:
        r"""Draws what stays the same for an epoch.

        Args:
            data (Data): The graph of the training interactions.
        """

    def forward(self, encoder: Encoder, data: Any, users: Tensor, items: Tensor) -> Tensor:
        r"""Returns the loss of a batch.

        Args:
            encoder (Encoder): The encoder.
            data (Data or Graph): What the encoder takes, the graph of the training interactions.
            users (torch.Tensor): The users of a batch of training interactions, of shape :obj:`[n]`.
            items (torch.Tensor): Their items, of shape :obj:`[n]`.
        """
        raise NotImplementedError


class DirectAUObjective(Objective):
    r"""Alignment and uniformity, see :class:`~pyg_topomask.recommend.losses.DirectAULoss`; no negative samples.

    Args:
        weight (float, optional): The weight of the uniformity. (default: :obj:`1.0`)
        t (float, optional): The factor in its exponent. (default: :obj:`2.0`)
        average (bool, optional): Whether to average over users and items, rather than to sum. (default: :obj:`True`)

    Raises:
        ValueError: If :obj:`weight` is not a finite number of at least 0, or :obj:`t` not one above 0.
    """

    def __init__(self, weight: float = 1.0, t: float = 2.0, average: bool = True) -> None:
        super().__init__()
        self.loss = DirectAULoss(weight, t, average)

    def forward(self, encoder: Encoder, data: Any, users: Tensor, items: Tensor) -> Tensor:
        loss: Tensor
        if isinstance(encoder, MGFormer):  # which need not embed what is not in the batch
            loss = self.loss(*encoder(data, torch.cat([users, encoder.num_users + items])).chunk(2))
        else:
            all_users, all_items = encoder(data)
            loss = self.loss(all_users[users], all_items[items])
        return loss


class BPRObjective(Objective):
    r"""Bayesian personalized ranking against one negative sample each. Interactions of users who know every item are left
    out: they have no negative.

    Args:
        sampler (NegativeSampler): The sampler.
        l2 (float, optional): The weight of half the squared norm of the batch's embeddings before any layer, for each
            interaction; the encoder has to have them as :obj:`embedding`. (default: :obj:`0.0`)

    Raises:
        ValueError: If :obj:`l2` is not a finite number of at least 0.
    """

    def __init__(self, sampler: NegativeSampler, l2: float = 0.0) -> None:
        super().__init__()
        check_not_negative(l2=l2)
        self.sampler = sampler
        self.l2 = l2
        self.loss = BPRLoss()

    def forward(self, encoder: Encoder, data: Any, users: Tensor, items: Tensor) -> Tensor:
        negatives = self.sampler(users)
        kept = negatives >= 0
        users, items, negatives = users[kept], items[kept], negatives[kept]
        all_users, all_items = encoder(data)
        own = all_users[users]
        loss: Tensor = self.loss((own * all_items[items]).sum(-1), (own * all_items[negatives]).sum(-1))
        if self.l2:
            assert isinstance(encoder, MFEncoder)
            nodes = torch.cat([users, items + data.num_users, negatives + data.num_users])
            loss = loss + self.l2 / 2 * encoder.embedding(nodes).square().sum() / max(len(users), 1)
        return loss


class _ContrastiveObjective(BPRObjective, ABC):
    r"""BPR, and the agreement of two views of the batch's users and items."""

    def __init__(self, sampler: NegativeSampler, l2: float, weight: float, temperature: float) -> None:
        super().__init__(sampler, l2)
        check_not_negative(weight=weight)
        check_above_zero(temperature=temperature)
        self.weight = weight
        self.temperature = temperature

    @abstractmethod
    def views(self, encoder: LightGCNEncoder, data: Data) -> list[tuple[Tensor, Tensor]]:
        r"""Returns two views of all users and items.

        Args:
            encoder (LightGCNEncoder): The encoder.
            data (Data): The graph of the training interactions.
        """

    def forward(self, encoder: Encoder, data: Any, users: Tensor, items: Tensor) -> Tensor:
        assert isinstance(encoder, LightGCNEncoder)
        loss = super().forward(encoder, data, users, items)
        views = zip(*self.views(encoder, data), strict=True)
        for (one, other), index in zip(views, (users.unique(), items.unique()), strict=True):
            loss = loss + self.weight * info_nce(one[index], other[index], self.temperature)
        return loss


class SimGCLObjective(_ContrastiveObjective):
    r"""The objective of `"Are Graph Augmentations Necessary? Simple Graph Contrastive Learning for Recommendation"
    <https://arxiv.org/abs/2112.08679>`_: the views differ in noise that is added after each layer.

    Args:
        sampler (NegativeSampler): The sampler of BPR.
        l2 (float, optional): As in :class:`BPRObjective`. (default: :obj:`1e-4`)
        weight (float, optional): The weight of the contrastive loss. (default: :obj:`0.5`)
        temperature (float, optional): Its temperature. (default: :obj:`0.2`)
        noise (float, optional): The norm of the noise. (default: :obj:`0.1`)

    Raises:
        ValueError: If :obj:`l2` or :obj:`weight` is not a finite number of at least 0, or another one not above 0.
    """

    def __init__(
        self,
        sampler: NegativeSampler,
        l2: float = 1e-4,
        weight: float = 0.5,
        temperature: float = 0.2,
        noise: float = 0.1,
    ) -> None:
        super().__init__(sampler, l2, weight, temperature)
        check_above_zero(noise=noise)
        self.noise = noise

    def views(self, encoder: LightGCNEncoder, data: Data) -> list[tuple[Tensor, Tensor]]:
        return [encoder(data, self.noise) for _ in range(2)]


class SGLObjective(_ContrastiveObjective):
    r"""The objective of `"Self-supervised Graph Learning for Recommendation" <https://arxiv.org/abs/2010.10783>`_ with edge
    dropout: the views see two random parts of the graph, drawn for each epoch.

    Args:
        sampler (NegativeSampler): The sampler of BPR.
        l2 (float, optional): As in :class:`BPRObjective`. (default: :obj:`1e-4`)
        weight (float, optional): The weight of the contrastive loss. (default: :obj:`0.1`)
        temperature (float, optional): Its temperature. (default: :obj:`0.2`)
        dropout (float, optional): The probability of an interaction to be left out. (default: :obj:`0.1`)

    Raises:
        ValueError: If :obj:`l2` or :obj:`weight` is not a finite number of at least 0, :obj:`temperature` not one above 0, or
            :obj:`dropout` not one between 0 and 1.
    """

    def __init__(
        self,
        sampler: NegativeSampler,
        l2: float = 1e-4,
        weight: float = 0.1,
        temperature: float = 0.2,
        dropout: float = 0.1,
    ) -> None:
        super().__init__(sampler, l2, weight, temperature)
        if not 0 < dropout < 1:
            raise ValueError(f'dropout: got {dropout}; accepted are numbers between 0 and 1')
        self.dropout = dropout
        self.parts: list[Data] = []

    def start_epoch(self, data: Data) -> None:
        own = data.edge_index[:, data.edge_index[0] < data.num_users]
        pairs = torch.stack([own[0], own[1] - data.num_users])
        self.parts = []
        for _ in range(2):
            kept = pairs[:, torch.rand(pairs.size(1), device=pairs.device) >= self.dropout]
            self.parts.append(bipartite_data(kept, data.num_users, data.num_items))

    def views(self, encoder: LightGCNEncoder, data: Data) -> list[tuple[Tensor, Tensor]]:
        return [encoder(part) for part in self.parts]
