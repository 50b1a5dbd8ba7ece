r"""Feature maps of linear attention: what queries and keys become before the mask and the sum over nodes."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod

import torch
import torch.nn.functional as F
from torch import Tensor

__all__ = [
    'FEATURE_MAPS',
    'EluFeatures',
    'FavorFeatures',
    'FeatureMap',
    'FourierFeatures',
    'IdentityFeatures',
    'ReLUFeatures',
    'SquareFeatures',
]


class FeatureMap(torch.nn.Module, ABC):
    r"""A map :math:`\phi : \mathbb{R}^d \to \mathbb{R}^m` such that :math:`\phi(\mathbf{q})^{\top} \phi(\mathbf{k})` is the
    attention score.

    Args:
        channels (int): The channels :math:`d` of a head.
    """

    def __init__(self, channels: int) -> None:
        super().__init__()
        if channels < 1:
            raise ValueError(f'channels: got {channels}; accepted are numbers from 1')
        self.channels = channels

    @abstractmethod
    def forward(self, q: Tensor, k: Tensor, batch: Tensor | None = None, num_graphs: int = 1) -> tuple[Tensor, Tensor]:
        r"""Maps queries and keys.

        Args:
            q (torch.Tensor): Queries, :obj:`[N, H, d]`.
            k (torch.Tensor): Keys, :obj:`[N, H, d]`.
            batch (torch.Tensor, optional): The graph of each node, :obj:`[N]`. (default: :obj:`None`)
            num_graphs (int, optional): The number of graphs. (default: :obj:`1`)

        Returns:
            tuple of torch.Tensor: Their features, :obj:`[N, H, m]` each.
        """

    def reset_parameters(self) -> None:
        r"""Resets parameters and redraws random projections."""

    def extra_repr(self) -> str:
        return str(self.channels)


class _Elementwise(FeatureMap):
    r"""A map that acts on every channel alike."""

    def forward(self, q: Tensor, k: Tensor, batch: Tensor | None = None, num_graphs: int = 1) -> tuple[Tensor, Tensor]:
        return self._map(q), self._map(k)

    @abstractmethod
    def _map(self, x: Tensor) -> Tensor: ...


class ReLUFeatures(_Elementwise):
    r""":math:`\phi(x) = \max(x, 0)`, the map of the GRF paper's experiments (`Reid et al., 2025
    <https://arxiv.org/abs/2410.03462>`_, Table 2).

    Args:
        channels (int): The channels :math:`d` of a head.
        inplace (bool): Overwrite queries and keys where no gradient is recorded. (default: :obj:`False`)
    """

    def __init__(self, channels: int, inplace: bool = False) -> None:
        super().__init__(channels)
        self.inplace = inplace

    def _map(self, x: Tensor) -> Tensor:
        return x.relu_() if self.inplace and not torch.is_grad_enabled() else x.relu()


class EluFeatures(_Elementwise):
    r""":math:`\phi(x) = elu(x) + 1`, positive everywhere (`Katharopoulos et al., 2020 <https://arxiv.org/abs/2006.16236>`_)."""

    def _map(self, x: Tensor) -> Tensor:
        return F.elu(x) + 1.0


class SquareFeatures(_Elementwise):
    r""":math:`\phi(x) = x^2` (`Choromanski et al., 2022 <https://arxiv.org/abs/2107.07999>`_, Sec. 5.4)."""

    def _map(self, x: Tensor) -> Tensor:
        return x.square()


class IdentityFeatures(_Elementwise):
    r""":math:`\phi(x) = x`: scores are plain inner products, which may be negative."""

    def _map(self, x: Tensor) -> Tensor:
        return x


class _RandomFeatures(FeatureMap):
    r"""Random features of the softmax kernel, with what they share: projections, scale and stable exponents."""

    projection: Tensor

    def __init__(
        self, channels: int, num_features: int | None = None, orthogonal: bool = True, stabilize: bool = True
    ) -> None:
        super().__init__(channels)
        self.num_features = channels if num_features is None else num_features
        if self.num_features < 1:
            raise ValueError(f'num_features: got {num_features}; accepted are numbers from 1')
        self.orthogonal = orthogonal
        self.stabilize = stabilize
        self.register_buffer('projection', torch.empty(self.num_features, channels))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        self.redraw()

    @torch.no_grad()
    def redraw(self, generator: torch.Generator | None = None) -> None:
        r"""Draws a new :math:`\mathbf{\Omega}`."""
        size = (self.num_features, self.channels)
        rows = torch.randn(size, generator=generator)
        if self.orthogonal:
            blocks = torch.randn(-(-size[0] // size[1]), size[1], size[1], generator=generator)
            # The sign of R's diagonal makes Q uniform (Haar) on the orthogonal matrices.
            unitary, upper = torch.linalg.qr(blocks)
            unitary = unitary * upper.diagonal(dim1=-2, dim2=-1).sign().unsqueeze(-2)
            rows = rows.norm(dim=1, keepdim=True) * unitary.flatten(0, 1)[: size[0]]
        self.projection.copy_(rows)

    def forward(self, q: Tensor, k: Tensor, batch: Tensor | None = None, num_graphs: int = 1) -> tuple[Tensor, Tensor]:
        with torch.autocast(device_type=q.device.type, enabled=False):
            (exponent_q, factor_q), (exponent_k, factor_k) = self._features(self._scaled(q)), self._features(self._scaled(k))
            if self.stabilize:
                exponent_q = exponent_q - exponent_q.detach().amax(-1, keepdim=True)
                exponent_k = exponent_k - _graph_max(exponent_k.detach().amax(-1), batch, num_graphs).unsqueeze(-1)
            scale = 1.0 / math.sqrt(self.num_features)
            return exponent_q.exp() * (factor_q * scale), exponent_k.exp() * (factor_k * scale)

    def _scaled(self, x: Tensor) -> Tensor:
        # The scale of softmax attention, one over the root of d, goes half to the queries and half to the keys.
        scale: float = self.channels**-0.25
        return x.to(torch.promote_types(x.dtype, torch.float32)) * scale

    @abstractmethod
    def _features(self, x: Tensor) -> tuple[Tensor, Tensor | float]:
        r"""Returns exponents and factors, :obj:`[N, H, m]` or one for all: the features are
        :math:`factor \cdot \exp(exponent)`, but for the scale.
        """

    def extra_repr(self) -> str:
        return f'{self.channels}, num_features={self.num_features}, orthogonal={self.orthogonal}'


class FavorFeatures(_RandomFeatures):
    r"""Positive orthogonal random features (FAVOR+), which estimate the softmax kernel
    :math:`\exp(\mathbf{q}^{\top} \mathbf{k} / \sqrt{d})` without bias, from `"Rethinking Attention with Performers"
    <https://arxiv.org/abs/2009.14794>`_ (Sec. 2.3 and 2.4):

    .. math::
        \phi(\mathbf{x}) = \frac{1}{\sqrt{m}} \exp \left( \mathbf{\Omega} \mathbf{x} - \tfrac{1}{2} |\mathbf{x}|^2 \right),
        \qquad \mathbf{x} \leftarrow d^{-1/4} \mathbf{x}

    Exponents are shifted by their maximum, for queries per row and for keys by one constant per graph and head, which cancels
    in the normalised attention; :obj:`stabilize=False` leaves them. Under a mask that is local, a row all of whose keys lie
    far below the largest one of the graph (by more than 80 in the exponent) underflows and gives 0.

    Args:
        channels (int): The channels :math:`d` of a head.
        num_features (int, optional): The number of features :math:`m`. (default: :obj:`channels`)
        orthogonal (bool): Draw the rows of :math:`\mathbf{\Omega}` orthogonal within blocks of :math:`d`, with the lengths of
            Gaussian vectors. (default: :obj:`True`)
        stabilize (bool): Shift the exponents. (default: :obj:`True`)

    Example:
        >>> q = k = torch.zeros(1, 1, 4)
        >>> features, _ = FavorFeatures(4, num_features=8)(q, k)
        >>> features.square().sum()
        tensor(1.0000)
    """

    def _features(self, x: Tensor) -> tuple[Tensor, float]:
        return x @ self.projection.to(x.dtype).t() - 0.5 * x.square().sum(-1, keepdim=True), 1.0


class FourierFeatures(_RandomFeatures):
    r"""Random Fourier features of the softmax kernel :math:`\exp(\mathbf{q}^{\top} \mathbf{k} / \sqrt{d})`, unbiased, from
    `"Random Features for Large-Scale Kernel Machines"
    <https://papers.nips.cc/paper/3182-random-features-for-large-scale-kernel-machines>`_ (Algorithm 1), as `"Rethinking
    Attention with Performers" <https://arxiv.org/abs/2009.14794>`_ (Sec. 2.3) compares them:

    .. math::
        \phi(\mathbf{x}) = \frac{\exp(|\mathbf{x}|^2 / 2)}{\sqrt{m}} \left[ \cos(\mathbf{\Omega} \mathbf{x}),
        \sin(\mathbf{\Omega} \mathbf{x}) \right], \qquad \mathbf{x} \leftarrow d^{-1/4} \mathbf{x}

    The estimates may be negative, and vary most where the kernel is small: FAVOR+ is the better choice for attention.

    Args:
        channels (int): The channels :math:`d` of a head.
        num_features (int, optional): The number of frequencies :math:`m`, of which each makes two features.
            (default: :obj:`channels`)
        orthogonal (bool): Draw the rows of :math:`\mathbf{\Omega}` orthogonal within blocks of :math:`d`, with the lengths of
            Gaussian vectors. (default: :obj:`True`)
        stabilize (bool): Shift the exponents as :class:`FavorFeatures` does. (default: :obj:`True`)

    Example:
        >>> q = k = torch.zeros(1, 1, 4)
        >>> features, _ = FourierFeatures(4, num_features=8)(q, k)
        >>> features.shape, features.square().sum()
        (torch.Size([1, 1, 16]), tensor(1.0000))
    """

    def _features(self, x: Tensor) -> tuple[Tensor, Tensor]:
        angle = x @ self.projection.to(x.dtype).t()
        return 0.5 * x.square().sum(-1, keepdim=True), torch.cat([angle.cos(), angle.sin()], dim=-1)


def _graph_max(x: Tensor, batch: Tensor | None, num_graphs: int) -> Tensor:
    r"""The largest entry of each graph and head, at each of its nodes, for :obj:`x` of shape :obj:`[N, H]`."""
    if x.numel() == 0:
        return x
    if batch is None:
        return x.amax(0, keepdim=True).expand_as(x)
    largest = x.new_full((num_graphs, x.size(1)), -math.inf)
    return largest.scatter_reduce(0, batch.unsqueeze(1).expand_as(x), x, 'amax').index_select(0, batch)


FEATURE_MAPS: dict[str, type[FeatureMap]] = {
    'relu': ReLUFeatures,
    'elu': EluFeatures,
    'square': SquareFeatures,
    'favor': FavorFeatures,
    'fourier': FourierFeatures,
    'identity': IdentityFeatures,
}
