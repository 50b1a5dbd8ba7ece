r"""The recommenders that MGFormer is compared with, on PyG's LightGCN, its BPR loss and its negative sampling."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.nn.conv.gcn_conv import gcn_norm
from torch_geometric.nn.models.lightgcn import BPRLoss, LightGCN
from torch_geometric.utils import structured_negative_sampling, to_torch_csr_tensor

from pyg_topomask.apps.recommend import DirectAULoss, InteractionDataset, Recommender
from pyg_topomask.apps.recommend.interactions import bipartite_data
from pyg_topomask.errors import ArgumentError
from pyg_topomask.utils.checks import check_above_zero, check_not_negative, check_whole

__all__ = ['BASELINES', 'BPR', 'SETTINGS', 'SGL', 'DirectAU', 'LightGCNEncoder', 'SimGCL', 'info_nce']

_CONTRASTIVE = {'lr': 5e-3, 'weight_decay': 0.0, 'init_std': 0.1, 'l2': 1e-4, 'temperature': 0.2, 'layers': 2}
#: The settings of each baseline. Without layers, LightGCN is matrix factorization.
SETTINGS: dict[str, dict[str, Any]] = {
    'BPRMF': {'lr': 5e-3, 'weight_decay': 0.0, 'init_std': 0.1, 'layers': 0, 'l2': 1e-4},
    'LightGCN': {'lr': 5e-3, 'weight_decay': 0.0, 'init_std': 0.1, 'layers': 3, 'l2': 1e-4},
    'DirectAU': {
        'lr': 1e-3,
        'weight_decay': 1e-6,
        'init_std': 0.01,
        'layers': 2,
        'weight': 1.0,
        't': 2.0,
        'average': True,
    },
    'SimGCL': {**_CONTRASTIVE, 'weight': 0.5, 'noise': 0.1},
    'SGL': {**_CONTRASTIVE, 'weight': 0.1, 'dropout': 0.1},
}


class LightGCNEncoder(LightGCN):  # type: ignore[misc]
    r"""PyG's LightGCN as an encoder of users and items. Without layers it is matrix factorization."""

    def __init__(
        self,
        num_users: int,
        num_items: int,
        embedding_dim: int,
        num_layers: int,
        init_std: float,
        alpha: Tensor | None = None,
    ) -> None:
        check_whole(0, layers=num_layers)
        check_not_negative(init_std=init_std)
        super().__init__(num_users + num_items, embedding_dim, num_layers, alpha, normalize=False)
        torch.nn.init.normal_(self.embedding.weight, std=init_std)
        self.sizes = [num_users, num_items]

    def forward(self, data: Data) -> tuple[Tensor, Tensor]:
        users, items = self.get_embedding(data.adj_t).split(self.sizes)
        return users, items


def _with_adjacency(data: Data) -> Data:
    r"""Adds the normalized adjacency as a CSR matrix. Its products are several times faster than message passing."""
    edge_index, weight = gcn_norm(data.edge_index, num_nodes=data.num_nodes, add_self_loops=False)
    with torch.sparse.check_sparse_tensor_invariants(enable=False):  # PyTorch warns without a choice
        data.adj_t = to_torch_csr_tensor(edge_index, weight, data.num_nodes)
    return data


class _Baseline(Recommender):
    r"""A LightGCN encoder with the settings of the options."""

    encoder: LightGCNEncoder
    data: Data

    def __init__(self, dataset: InteractionDataset, options: Any, alpha: Tensor | None = None) -> None:
        self.settings = settings = options[options.model]
        sizes = dataset.num_users, dataset.num_items, options.embedding_dim
        encoder = LightGCNEncoder(*sizes, settings.layers, settings.init_std, alpha)
        super().__init__(encoder, _with_adjacency(dataset.data()))


class DirectAU(_Baseline):
    r"""Alignment and uniformity of the embeddings of LightGCN."""

    def __init__(self, dataset: InteractionDataset, options: Any) -> None:
        super().__init__(dataset, options)
        self.criterion = DirectAULoss(self.settings.weight, self.settings.t, self.settings.average)

    def loss(self, users: Tensor, items: Tensor) -> Tensor:
        all_users, all_items = self.encoder(self.data)
        loss: Tensor = self.criterion(all_users[users], all_items[items])
        return loss


class BPR(_Baseline):
    r"""Bayesian personalized ranking against one negative item for each interaction, drawn for each epoch. Half the squared
    norm of the batch's embeddings before any layer is added with the weight :obj:`l2`, divided by the size of the batch.
    """

    def __init__(self, dataset: InteractionDataset, options: Any, alpha: Tensor | None = None) -> None:
        super().__init__(dataset, options, alpha)
        check_not_negative(l2=self.settings.l2)
        if int(torch.bincount(dataset.train[0]).max()) == dataset.num_items:
            raise ArgumentError('dataset', 'a user who knows every item', 'users with an item to be sampled')
        self.criterion = BPRLoss(self.settings.l2 / 2)

    def _pairs(self) -> Tensor:
        r"""Returns the training interactions, sorted by user and item."""
        users, items = self.data.edge_index.chunk(2, dim=1)[0]
        return torch.stack([users, items - self.data.num_users])

    def start_epoch(self) -> None:
        pairs = self._pairs()
        self.keys = pairs[0] * self.data.num_items + pairs[1]
        self.negatives = structured_negative_sampling(pairs, self.data.num_items)[2]

    def loss(self, users: Tensor, items: Tensor) -> Tensor:
        all_users, all_items = self.encoder(self.data)
        negatives = self.negatives[torch.searchsorted(self.keys, users * self.data.num_items + items)]
        user = all_users[users]
        nodes = torch.cat([users, self.data.num_users + items, self.data.num_users + negatives])
        loss: Tensor = self.criterion(
            (user * all_items[items]).sum(-1), (user * all_items[negatives]).sum(-1), self.encoder.embedding(nodes)
        )
        return loss


class _Contrastive(BPR):
    r"""BPR, and the agreement of two views of the batch's users and items."""

    def __init__(self, dataset: InteractionDataset, options: Any, alpha: Tensor | None = None) -> None:
        super().__init__(dataset, options, alpha)
        check_not_negative(weight=self.settings.weight)
        check_above_zero(temperature=self.settings.temperature)

    def views(self) -> list[tuple[Tensor, Tensor]]:
        r"""Returns two views of all users and items."""
        raise NotImplementedError

    def loss(self, users: Tensor, items: Tensor) -> Tensor:
        loss = super().loss(users, items)
        (users_1, items_1), (users_2, items_2) = self.views()
        for view_1, view_2, index in ((users_1, users_2, users.unique()), (items_1, items_2, items.unique())):
            loss = loss + self.settings.weight * info_nce(view_1[index], view_2[index], self.settings.temperature)
        return loss


class SimGCL(_Contrastive):
    r"""`"Are Graph Augmentations Necessary? Simple Graph Contrastive Learning for Recommendation"
    <https://arxiv.org/abs/2112.08679>`_: the views differ in noise that is added after each layer, and the embeddings
    themselves are left out of the mean over the layers.
    """

    def __init__(self, dataset: InteractionDataset, options: Any) -> None:
        layers = options[options.model].layers
        check_whole(1, layers=layers)
        super().__init__(dataset, options, torch.tensor([0.0] + [1 / layers] * layers))
        check_above_zero(noise=self.settings.noise)

    def views(self) -> list[tuple[Tensor, Tensor]]:
        hooks = [conv.register_forward_hook(self._add_noise) for conv in self.encoder.convs]
        views = [self.encoder(self.data) for _ in range(2)]
        for hook in hooks:
            hook.remove()
        return views

    def _add_noise(self, conv: torch.nn.Module, inputs: object, x: Tensor) -> Tensor:
        noise: float = self.settings.noise
        return x + noise * x.sign() * F.normalize(torch.rand_like(x), dim=-1)


class SGL(_Contrastive):
    r"""`"Self-supervised Graph Learning for Recommendation" <https://arxiv.org/abs/2010.10783>`_ with edge dropout: the views
    are two random subgraphs, drawn for each epoch.
    """

    def __init__(self, dataset: InteractionDataset, options: Any) -> None:
        super().__init__(dataset, options)
        if not 0 < self.settings.dropout < 1:
            raise ArgumentError('dropout', self.settings.dropout, 'numbers between 0 and 1')

    def start_epoch(self) -> None:
        super().start_epoch()
        pairs = self._pairs()
        self.subgraphs: list[Data] = []
        for _ in range(2):
            kept = pairs[:, torch.rand(pairs.size(1), device=pairs.device) >= self.settings.dropout]
            self.subgraphs.append(_with_adjacency(bipartite_data(kept, self.data.num_users, self.data.num_items)))

    def views(self) -> list[tuple[Tensor, Tensor]]:
        return [self.encoder(subgraph) for subgraph in self.subgraphs]


def info_nce(x: Tensor, y: Tensor, temperature: float = 0.2) -> Tensor:
    r"""Returns the contrastive loss of two views, where row :math:`i` of one belongs to row :math:`i` of the other: the
    cross-entropy of the cosine similarities over the temperature.
    """
    similarity = F.normalize(x, dim=-1) @ F.normalize(y, dim=-1).t()
    return F.cross_entropy(similarity / temperature, torch.arange(x.size(0), device=x.device))


#: What builds each baseline from the data set and the options.
BASELINES: dict[str, Callable[[InteractionDataset, Any], Recommender]] = {
    'BPRMF': BPR,
    'LightGCN': BPR,
    'DirectAU': DirectAU,
    'SimGCL': SimGCL,
    'SGL': SGL,
}
