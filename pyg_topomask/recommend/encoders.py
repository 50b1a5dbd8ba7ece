r"""Baseline encoders: what maps the graph of interactions to embeddings of users and items."""

from __future__ import annotations

from typing import Any, Protocol

import torch
import torch.nn.functional as F
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.nn import LGConv

from pyg_topomask.checks import check_not_negative, check_whole

__all__ = ['Encoder', 'LightGCNEncoder', 'MFEncoder']


class Encoder(Protocol):
    r"""What the objectives need of a model: :obj:`encoder(data)` returns the embeddings of users and items, whose inner
    products are the scores. :class:`~pyg_topomask.nn.models.MGFormer` is one too, of a graph.
    """

    def __call__(self, data: Any) -> tuple[Tensor, Tensor]: ...


class MFEncoder(torch.nn.Module):
    r"""Matrix factorization: an embedding for each user and item, and nothing else.

    Args:
        num_users (int): The number of users.
        num_items (int): The number of items.
        embedding_dim (int, optional): The size of the embeddings. (default: :obj:`64`)
        init_std (float, optional): The standard deviation of the embeddings at the start. (default: :obj:`0.1`)

    Raises:
        ValueError: If a size is below 1, or :obj:`init_std` is not a finite number of at least 0.

    Example:
        >>> users, items = MFEncoder(2, 3, embedding_dim=4)(Data())
        >>> users.shape, items.shape
        (torch.Size([2, 4]), torch.Size([3, 4]))
    """

    def __init__(self, num_users: int, num_items: int, embedding_dim: int = 64, init_std: float = 0.1) -> None:
        super().__init__()
        check_whole(1, num_users=num_users, num_items=num_items, embedding_dim=embedding_dim)
        check_not_negative(init_std=init_std)
        self.num_users = num_users
        self.num_items = num_items
        self.init_std = init_std
        self.embedding = torch.nn.Embedding(num_users + num_items, embedding_dim)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        r"""Draws the embeddings anew."""
        torch.nn.init.normal_(self.embedding.weight, std=self.init_std)

    def forward(self, data: Data) -> tuple[Tensor, Tensor]:
        r"""Returns the embeddings of users and items, of shapes :obj:`[num_users, d]` and :obj:`[num_items, d]`.

        Args:
            data (Data): The graph, of which nothing is used.
        """
        return self._split(self.embedding.weight)

    def _split(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return x[: self.num_users], x[self.num_users :]

    def extra_repr(self) -> str:
        return f'{self.num_users}, {self.num_items}, init_std={self.init_std}'


class LightGCNEncoder(MFEncoder):
    r"""The encoder of `"LightGCN: Simplifying and Powering Graph Convolution Network for Recommendation"
    <https://arxiv.org/abs/2002.02126>`_: the mean over the layers of PyG's :class:`~torch_geometric.nn.conv.LGConv`.

    Args:
        num_users (int): The number of users.
        num_items (int): The number of items.
        embedding_dim (int, optional): The size of the embeddings. (default: :obj:`64`)
        num_layers (int, optional): The number of layers. (default: :obj:`3`)
        skip_input (bool, optional): Whether the embeddings themselves are left out of the mean, as in SimGCL.
            (default: :obj:`False`)
        init_std (float, optional): The standard deviation of the embeddings at the start. (default: :obj:`0.1`)

    Raises:
        ValueError: If a size is below 1, or :obj:`init_std` is not a finite number of at least 0.
    """

    def __init__(
        self,
        num_users: int,
        num_items: int,
        embedding_dim: int = 64,
        num_layers: int = 3,
        skip_input: bool = False,
        init_std: float = 0.1,
    ) -> None:
        super().__init__(num_users, num_items, embedding_dim, init_std)
        check_whole(1, num_layers=num_layers)
        self.num_layers = num_layers
        self.skip_input = skip_input
        self.conv = LGConv(normalize=False)  # the adjacency comes normalized

    def forward(self, data: Data, noise: float = 0.0) -> tuple[Tensor, Tensor]:
        r"""Returns the embeddings of users and items, of shapes :obj:`[num_users, d]` and :obj:`[num_items, d]`.

        Args:
            data (Data): The graph, see :func:`~pyg_topomask.recommend.interactions.bipartite_data`.
            noise (float, optional): The norm of random vectors, in each row of the orthant of the embedding, that are added
                after each layer (SimGCL). (default: :obj:`0.0`)
        """
        x = self.embedding.weight
        layers = [] if self.skip_input else [x]
        for _ in range(self.num_layers):
            x = self.conv(x, data.adj_t)
            if noise:
                x = x + noise * x.sign() * F.normalize(torch.rand_like(x), dim=-1)
            layers.append(x)
        return self._split(torch.stack(layers).mean(0))
