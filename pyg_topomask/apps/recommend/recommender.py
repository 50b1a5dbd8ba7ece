r"""Recommenders: an encoder of users and items with a graph, and the loss, alignment and uniformity of their embeddings."""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch_geometric.data import Data

from pyg_topomask.apps.recommend.interactions import InteractionDataset
from pyg_topomask.errors import ArgumentError
from pyg_topomask.graphs.graph import Graph
from pyg_topomask.nn.models.mgformer import MGFormer
from pyg_topomask.transforms.add_svd_encoding import AddSVDEncoding
from pyg_topomask.utils.checks import check_above_zero, check_choice, check_not_negative, check_whole


def alignment(x: Tensor, y: Tensor) -> Tensor:
    r"""The mean squared distance of pairs of embeddings, :obj:`[n, d]`, on the unit sphere, from `"Understanding Contrastive
    Representation Learning through Alignment and Uniformity on the Hypersphere" <https://arxiv.org/abs/2005.10242>`_:

    .. math::
        \frac{1}{n} \sum_i \left\| \frac{\mathbf{x}_i}{\|\mathbf{x}_i\|} - \frac{\mathbf{y}_i}{\|\mathbf{y}_i\|} \right\|^2

    Example:
        >>> float(alignment(torch.tensor([[2.0, 0.0]]), torch.tensor([[0.0, 1.0]])))
        2.0
    """
    if x.shape != y.shape:
        raise ArgumentError('y', f'shape {list(y.shape)}', f'that of x, {list(x.shape)}')
    if x.size(0) == 0:
        return _unit(x).sum() + _unit(y).sum()
    return (_unit(x) - _unit(y)).square().sum(-1).mean()


def uniformity(x: Tensor, t: float = 2.0) -> Tensor:
    r"""The nonuniformity of points on the unit sphere, over all pairs of different rows, from the same paper as
    :func:`alignment`:

    .. math::
        \log \frac{1}{n (n - 1)} \sum_{i \neq j}
        \exp\left(-t \left\| \frac{\mathbf{x}_i}{\|\mathbf{x}_i\|} - \frac{\mathbf{x}_j}{\|\mathbf{x}_j\|} \right\|^2\right)

    The result is :obj:`0` for fewer than two rows. DirectAU has :math:`t = 2`, and MGFormer's Eq. 13 has :math:`t = 1`.

    Example:
        >>> round(float(uniformity(torch.eye(2), t=1.0)), 4)
        -2.0
    """
    check_above_zero(t=t)
    x, n = _unit(x), x.size(0)
    if n < 2:
        return 0.0 * x.sum()
    return (-t * torch.pdist(x).square()).logsumexp(0) - math.log(n * (n - 1) / 2)


class DirectAULoss(torch.nn.Module):
    r"""Alignment and uniformity of users and items, from `"Towards Representation Alignment and Uniformity in Collaborative
    Filtering" <https://arxiv.org/abs/2206.12811>`_ and, with :obj:`t=1.0` and :obj:`average=False`, `"Masked Graph
    Transformer for Large-Scale Recommendation" <https://doi.org/10.1145/3626772.3657971>`_ (Eq. 13, of normalized embeddings):

    .. math::
        \mathcal{L} = \mathcal{L}_\mathrm{align} + \lambda \, \mathcal{L}_\mathrm{uniform}

    Args:
        weight (float, optional): :math:`\lambda`. (default: :obj:`1.0`)
        t (float, optional): The factor in the exponent of :func:`uniformity`. (default: :obj:`2.0`)
        average (bool, optional): If set to :obj:`True`, :math:`\mathcal{L}_\mathrm{uniform}` is the mean of the terms of
            users and items, as in DirectAU's code. Otherwise it is their sum, as in Eq. 13. (default: :obj:`True`)

    Raises:
        ValueError: If :obj:`weight` is not a finite number of at least 0, or :obj:`t` is not a finite number above 0.

    Example:
        >>> loss = DirectAULoss(weight=0.5)
        >>> loss(torch.randn(8, 4), torch.randn(8, 4)).shape
        torch.Size([])
    """

    def __init__(self, weight: float = 1.0, t: float = 2.0, average: bool = True) -> None:
        super().__init__()
        check_not_negative(weight=weight)
        check_above_zero(t=t)
        self.weight = weight
        self.t = t
        self.average = average

    def forward(self, users: Tensor, items: Tensor) -> Tensor:
        r"""Returns the loss of pairs of users and their items, with embeddings of shape :obj:`[n, d]`."""
        uniform = uniformity(users, self.t) + uniformity(items, self.t)
        return alignment(users, items) + self.weight * (uniform / 2 if self.average else uniform)

    def extra_repr(self) -> str:
        return f'weight={self.weight}, t={self.t}, average={self.average}'


def _unit(x: Tensor) -> Tensor:
    # Squares of small numbers underflow in half precision.
    return F.normalize(x.float() if x.dtype in (torch.float16, torch.bfloat16) else x, dim=-1)


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
