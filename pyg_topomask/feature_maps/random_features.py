r"""Random features of the softmax kernel."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterable

import torch
from torch import Tensor

from pyg_topomask.feature_maps.feature_map import FeatureMap, graph_max
from pyg_topomask.graphs.segments import Segments
from pyg_topomask.ops.normalize import at_most, power_of_two, row_size
from pyg_topomask.utils.checks import check_size
from pyg_topomask.utils.options import described_by
from pyg_topomask.utils.precision import widened
from pyg_topomask.utils.random import generator_on

__all__ = ['FavorFeatures', 'FourierFeatures', 'PositiveFeatures', 'SimplexFeatures']

# Bounds of scaled vectors, beyond which exponents would be rounded by more than 1, and of exponents that are not shifted.
_LONGEST, _LARGEST = 1e3, 80.0


class RandomFeatures(FeatureMap):
    r"""Base class of random features of the softmax kernel: projections, scale and stable exponents."""

    projection: Tensor

    def __init__(self, channels: int, num_features: int | None = None, orthogonal: bool = True, stabilize: bool = True) -> None:
        super().__init__(channels)
        self.num_features = channels if num_features is None else num_features
        check_size(num_features=self.num_features)
        self.orthogonal = orthogonal
        self.stabilize = stabilize
        self.register_buffer('projection', torch.empty(self.num_features, channels))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        self.redraw()

    @torch.no_grad()
    def redraw(self, generator: torch.Generator | None = None) -> None:
        generator = generator_on(torch.device('cpu'), generator)
        rows = torch.randn(self.num_features, self.channels, generator=generator)
        if self.orthogonal:
            directions = self._directions(generator).flatten(0, 1)[: self.num_features]
            rows = rows.norm(dim=1, keepdim=True) * directions
        self.projection.copy_(rows)

    def _directions(self, generator: torch.Generator | None) -> Tensor:
        r"""Samples unit vectors in blocks of :math:`d`, each uniform on the sphere, :obj:`[ceil(m / d), d, d]`."""
        size = self.channels
        blocks = torch.randn(-(-self.num_features // size), size, size, generator=generator)
        # The sign of R's diagonal makes Q uniform (Haar) on the orthogonal matrices.
        unitary, upper = torch.linalg.qr(blocks)
        return unitary * upper.diagonal(dim1=-2, dim2=-1).sign().unsqueeze(-2)

    def forward(self, q: Tensor, k: Tensor, segments: Segments | None = None) -> tuple[Tensor, Tensor]:
        with torch.autocast(device_type=q.device.type, enabled=False):
            (exponent_q, offset_q, factor_q), (exponent_k, offset_k, factor_k) = self._both(q, k, segments)
            if self.stabilize:
                largest_q, largest_k = (x.detach().amax(-1, keepdim=True) for x in (exponent_q, exponent_k))
                largest_k = largest_k + offset_k.detach()
                offset_q = offset_q - offset_q.detach() - largest_q
                offset_k = offset_k - graph_max(largest_k.squeeze(-1), segments).unsqueeze(-1)
            # The factor 1 / sqrt(m) is part of the exponents. A product would keep one more tensor.
            shift = 0.5 * math.log(self.num_features)
            exponent_q, exponent_k = exponent_q + (offset_q - shift), exponent_k + (offset_k - shift)
            if not self.stabilize:
                exponent_q, exponent_k = exponent_q.clamp(max=_LARGEST), exponent_k.clamp(max=_LARGEST)
            features_q, features_k = exponent_q.exp(), exponent_k.exp()
            return (
                features_q if factor_q is None else features_q * factor_q,
                features_k if factor_k is None else features_k * factor_k,
            )

    def _projected(self, x: Tensor) -> tuple[Tensor, Tensor]:
        r"""Returns :math:`\mathbf{\Omega} \mathbf{x}`, :obj:`[N, H, m]`, and :math:`|\mathbf{x}|^2 / 2`, :obj:`[N, H, 1]`."""
        x, half, scale = self._bounded(x)
        return x @ (self.projection.to(x.dtype) * scale).t(), half

    def _bounded(self, x: Tensor) -> tuple[Tensor, Tensor, float]:
        r"""Returns vectors of bounded length, half of their squared length after scaling, and the scale still to be applied."""
        # Queries and keys are each scaled by d ** -0.25, which gives 1 / sqrt(d).
        x, scale = widened(x), self.channels**-0.25
        half = x.square().sum(-1, keepdim=True) * (0.5 * scale**2)
        if not at_most(half, 0.5 * _LONGEST**2):
            power = power_of_two(row_size(x)).unsqueeze(-1)
            length = (x / power).detach().norm(dim=-1, keepdim=True) * power * scale
            x = x * (_LONGEST / length.clamp(min=_LONGEST))
            half = x.square().sum(-1, keepdim=True) * (0.5 * scale**2)
        return x, half, scale

    def _both(self, q: Tensor, k: Tensor, segments: Segments | None) -> Iterable[tuple[Tensor, Tensor, Tensor | None]]:
        r"""Returns what :meth:`_features` does, for queries and keys."""
        return map(self._features, (q, k))

    @abstractmethod
    def _features(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor | None]:
        r"""Returns exponents, :obj:`[N, H, m]`, an offset of all exponents of a row, and optional factors. The features are
        :math:`factor \cdot \exp(exponent + offset)`, up to the scale.
        """

    def extra_repr(self) -> str:
        return f'{self.channels}, num_features={self.num_features}, orthogonal={self.orthogonal}'


class FavorFeatures(RandomFeatures):
    r"""Positive orthogonal random features (FAVOR+), which estimate the softmax kernel
    :math:`\exp(\mathbf{q}^{\top} \mathbf{k} / \sqrt{d})` without bias, from `"Rethinking Attention with Performers"
    <https://arxiv.org/abs/2009.14794>`_ (Sec. 2.3 and 2.4):

    .. math::
        \phi(\mathbf{x}) = \frac{1}{\sqrt{m}} \exp \left( \mathbf{\Omega} \mathbf{x} - \tfrac{1}{2} |\mathbf{x}|^2 \right),
        \qquad \mathbf{x} \leftarrow d^{-1/4} \mathbf{x}

    Exponents are shifted by their maximum, which cancels in normalized attention: per row for queries, and per graph and head
    for keys. :obj:`stabilize=False` does not shift them, and limits them to 80. Under a local mask, the output of a row is 0 if
    the exponents of all its keys are more than 80 below the largest one of the graph. The error of the exponents of keys is
    :math:`10^{-7} |\mathbf{x}|^2` in float32. Scaled vectors longer than 1000 are shortened to this length. Far above a length
    of 10, only the shortest keys of a graph have a weight.

    Args:
        channels (int): The channels :math:`d` of a head.
        num_features (int, optional): The number of features :math:`m`. (default: :obj:`channels`)
        orthogonal (bool): Use rows of :math:`\mathbf{\Omega}` that are orthogonal within blocks of :math:`d`, with the lengths
            of Gaussian vectors. (default: :obj:`True`)
        stabilize (bool): Shift the exponents. (default: :obj:`True`)

    Example:
        >>> q = k = torch.zeros(1, 1, 4)
        >>> features, _ = FavorFeatures(4, num_features=8)(q, k)
        >>> features.square().sum()
        tensor(1.0000)
    """

    def _features(self, x: Tensor) -> tuple[Tensor, Tensor, None]:
        projected, half = self._projected(x)
        return projected, -half, None


@described_by(FavorFeatures)
class PositiveFeatures(FavorFeatures):
    r"""Positive random features with independent directions: :class:`FavorFeatures` with :obj:`orthogonal=False`, from
    `"Rethinking Attention with Performers" <https://arxiv.org/abs/2009.14794>`_ (Sec. 2.3). They are a baseline.
    """

    def __init__(self, channels: int, num_features: int | None = None, stabilize: bool = True) -> None:
        super().__init__(channels, num_features, False, stabilize)


@described_by(FavorFeatures)
class SimplexFeatures(FavorFeatures):
    r"""Simplex random features of the softmax kernel, from `"Simplex Random Features" <https://arxiv.org/abs/2301.13856>`_
    (Sec. 3). They have the smallest mean squared error of all positive features with weight-independent directions. `"Masked
    Graph Transformer for Large-Scale Recommendation" <https://doi.org/10.1145/3626772.3657971>`_ (Eq. 7) uses them. They are
    :class:`FavorFeatures` with

    .. math::
        \mathbf{\Omega} = \mathbf{D} \mathbf{S} \mathbf{R}_o

    where the rows of :math:`\mathbf{S} \in \mathbb{R}^{d \times d}` are the vertices of a regular simplex around the origin,
    :math:`\mathbf{R}_o` is uniform on the orthogonal matrices, and the lengths :math:`D_{ii}` are :math:`\chi_d`-distributed.
    The angles between directions are as large as possible. More than :math:`d` features use independent blocks.

    Example:
        >>> directions = torch.nn.functional.normalize(SimplexFeatures(3).projection)
        >>> directions @ directions.t()
        tensor([[ 1.0000, -0.5000, -0.5000],
                [-0.5000,  1.0000, -0.5000],
                [-0.5000, -0.5000,  1.0000]])
    """

    def __init__(self, channels: int, num_features: int | None = None, stabilize: bool = True) -> None:
        super().__init__(channels, num_features, True, stabilize)

    def _directions(self, generator: torch.Generator | None) -> Tensor:
        return _simplex(self.channels) @ super()._directions(generator)


@described_by(FavorFeatures)
class FourierFeatures(RandomFeatures):
    r"""Random Fourier features of the softmax kernel :math:`\exp(\mathbf{q}^{\top} \mathbf{k} / \sqrt{d})`, unbiased, from
    `"Random Features for Large-Scale Kernel Machines"
    <https://papers.nips.cc/paper/3182-random-features-for-large-scale-kernel-machines>`_ (Algorithm 1). They are a baseline in
    `"Rethinking Attention with Performers" <https://arxiv.org/abs/2009.14794>`_ (Sec. 2.3):

    .. math::
        \phi(\mathbf{x}) = \frac{\exp(|\mathbf{x}|^2 / 2)}{\sqrt{m}} \left[ \cos(\mathbf{\Omega} \mathbf{x}),
        \sin(\mathbf{\Omega} \mathbf{x}) \right], \qquad \mathbf{x} \leftarrow d^{-1/4} \mathbf{x}

    The estimates may be negative, and their variance is largest where the kernel is small. Prefer FAVOR+ for attention.

    Args:
        num_features (int, optional): The number of frequencies :math:`m`, with two features each.
            (default: :obj:`channels`)

    Example:
        >>> q = k = torch.zeros(1, 1, 4)
        >>> features, _ = FourierFeatures(4, num_features=8)(q, k)
        >>> features.shape, features.square().sum()
        (torch.Size([1, 1, 16]), tensor(1.0000))
    """

    def _features(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        angle, half = self._projected(x)
        return half, half.new_zeros(()), torch.cat([angle.cos(), angle.sin()], dim=-1)


def _simplex(size: int) -> Tensor:
    r"""The matrix :math:`\mathbf{S}` of simplex random features: unit vectors with inner products -1 / (size - 1)."""
    if size == 1:
        return torch.ones(1, 1)
    rest = torch.ones(size)
    rest[-1] = 0.0
    corners: Tensor = math.sqrt(size / (size - 1)) * torch.eye(size) - (math.sqrt(size) + 1) / (size - 1) ** 1.5 * rest
    corners[-1] = rest / math.sqrt(size - 1)
    return corners
