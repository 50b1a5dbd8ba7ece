r"""Feature maps of linear attention, applied to queries and keys."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence

import torch
from torch import Tensor

from pyg_topomask.errors import ArgumentError
from pyg_topomask.graphs.segments import Segments, multiply_by_graph, products_by_graph
from pyg_topomask.ops.normalize import at_most, in_range, power_of_two, row_size, with_ones
from pyg_topomask.utils.checks import check_above_zero, check_size
from pyg_topomask.utils.options import described_by
from pyg_topomask.utils.random import generator_on

__all__ = [
    'DenseExponentialFeatures',
    'EluFeatures',
    'FavorFeatures',
    'FeatureMap',
    'FocusedFeatures',
    'FourierFeatures',
    'IdentityFeatures',
    'PositiveFeatures',
    'ReLUFeatures',
    'SimplexFeatures',
    'SquareFeatures',
]


# Bounds of scaled vectors, beyond which exponents would be rounded by more than 1, and of exponents that are not shifted.
_LONGEST, _LARGEST = 1e3, 80.0


class FeatureMap(torch.nn.Module, ABC):
    r"""A map :math:`\phi : \mathbb{R}^d \to \mathbb{R}^m`. The attention score is :math:`\phi(\mathbf{q})^{\top}
    \phi(\mathbf{k})`.

    Args:
        channels (int): The channels :math:`d` of a head.
    """

    #: Whether the features of a node depend on the other nodes of its graph beyond a factor that attention cancels.
    reads_all_nodes = False

    def __init__(self, channels: int) -> None:
        super().__init__()
        check_size(channels=channels)
        self.channels = channels

    @abstractmethod
    def forward(self, q: Tensor, k: Tensor, segments: Segments | None = None) -> tuple[Tensor, Tensor]:
        r"""Maps queries and keys.

        Args:
            q (torch.Tensor): Queries, :obj:`[N, H, d]`. On one graph, there may be fewer queries than keys.
            k (torch.Tensor): Keys, :obj:`[N, H, d]`.
            segments (Segments, optional): The division of the nodes into graphs. (default: :obj:`None`, one graph)

        Returns:
            tuple of torch.Tensor: Their features, :obj:`[N, H, m]` each.
        """

    def reset_parameters(self) -> None:
        r"""Resets parameters and redraws random projections."""

    def redraw(self, generator: torch.Generator | None = None) -> None:
        r"""Draws new random projections, as Performers do during training. Maps without projections do not change.

        Args:
            generator (torch.Generator, optional): The source of random numbers, on any device. (default: :obj:`None`)
        """

    def extra_repr(self) -> str:
        return str(self.channels)


class _Elementwise(FeatureMap):
    r"""An elementwise map."""

    def forward(self, q: Tensor, k: Tensor, segments: Segments | None = None) -> tuple[Tensor, Tensor]:
        return self._map(q), self._map(k)

    @abstractmethod
    def _map(self, x: Tensor) -> Tensor: ...


@described_by(FeatureMap)
class ReLUFeatures(_Elementwise):
    r""":math:`\phi(x) = \max(x, 0)`, the map of the GRF paper's experiments (`Reid et al., 2025
    <https://arxiv.org/abs/2410.03462>`_, Table 2).

    The gradients of attention have no bound if the features of a query are tiny, or nearly orthogonal to those of all keys. A
    long training at a high learning rate may break down on one such step: clip gradients, or use :class:`EluFeatures`.
    """

    def _map(self, x: Tensor) -> Tensor:
        return x.relu()


@described_by(FeatureMap)
class EluFeatures(FeatureMap):
    r""":math:`\phi(x) = elu(x) + 1`, positive everywhere (`Katharopoulos et al., 2020 <https://arxiv.org/abs/2006.16236>`_).

    Because :math:`\phi' \le \phi`, the derivative of an output by an entry of a query or key is at most the largest difference
    of two values, under any mask without negative entries.

    If all features of a query, or of all keys of a graph, are tiny, they are divided by the largest one, which cancels in
    normalized attention.
    """

    def forward(self, q: Tensor, k: Tensor, segments: Segments | None = None) -> tuple[Tensor, Tensor]:
        q, k = _single(q), _single(k)
        features = self._map(q), self._map(k)
        if in_range(*features, zeros=False):
            return features
        # Features of negative entries are exponentials.
        highest_q, highest_k = q.detach().amax(-1, keepdim=True), _graph_max(k.detach().amax(-1), segments).unsqueeze(-1)
        return self._map(q, highest_q.clamp(max=0.0)), self._map(k, highest_k.clamp(max=0.0))

    @staticmethod
    def _map(x: Tensor, shift: Tensor | float = 0.0) -> Tensor:
        # Not elu(x) + 1, which loses digits for x far below 0.
        return x.relu() + (x.masked_fill(x > 0, 0.0) - shift).exp()  # from torch 2.15 on, clamp has no gradient at 0


@described_by(FeatureMap)
class SquareFeatures(FeatureMap):
    r""":math:`\phi(x) = x^2` (`Choromanski et al., 2022 <https://arxiv.org/abs/2107.07999>`_, Sec. 5.4).

    As with :class:`ReLUFeatures`, the gradients of attention have no bound.

    Very large or small queries, per row, and keys, per graph, are first divided by a power of two, which cancels in normalized
    attention.
    """

    def forward(self, q: Tensor, k: Tensor, segments: Segments | None = None) -> tuple[Tensor, Tensor]:
        q, k = _single(q), _single(k)
        if not in_range(q, k):
            q = q / power_of_two(row_size(q)).unsqueeze(-1)
            k = k / power_of_two(_graph_max(row_size(k), segments)).unsqueeze(-1)
        return q.square(), k.square()


@described_by(FeatureMap)
class IdentityFeatures(_Elementwise):
    r""":math:`\phi(x) = x`, so that scores are inner products, which may be negative."""

    def _map(self, x: Tensor) -> Tensor:
        return x


@described_by(FeatureMap)
class FocusedFeatures(_Elementwise):
    r"""Focused linear attention, which sharpens the direction of features and keeps their length, from `"FLatten Transformer:
    Vision Transformer using Focused Linear Attention" <https://arxiv.org/abs/2308.00442>`_:

    .. math::
        \phi(\mathbf{x}) = \frac{|\mathbf{y}|}{|\mathbf{y}^p|} \mathbf{y}^p, \qquad \mathbf{y} = \max(\mathbf{x}, 0)

    with elementwise powers. The depthwise convolution of the paper is not part of the map.

    Args:
        power (float): :math:`p`. (default: :obj:`3.0`)

    Example:
        >>> features, _ = FocusedFeatures(2)(torch.tensor([[[3., 4.]]]), torch.zeros(1, 1, 2))
        >>> features, features.norm()
        (tensor([[[1.9435, 4.6068]]]), tensor(5.0000))
    """

    def __init__(self, channels: int, power: float = 3.0) -> None:
        super().__init__(channels)
        check_above_zero(power=power)
        self.power = power

    def _map(self, x: Tensor) -> Tensor:
        with torch.autocast(device_type=x.device.type, enabled=False):
            x = _single(x).relu()
            # Dividing by the largest entry cancels, also in the gradient. Without it, powers and squares would overflow.
            largest = x.detach().amax(-1, keepdim=True)
            unit = x / largest.masked_fill(largest == 0, 1.0)
            # For p < 1, powers have no gradient at 0, and do not need one.
            sharp = torch.where(unit > 0, unit, 1.0).pow(self.power) * (unit > 0)
            length = sharp.norm(dim=-1, keepdim=True).masked_fill(largest == 0, 1.0)
            return sharp * (unit.norm(dim=-1, keepdim=True) / length) * largest

    def extra_repr(self) -> str:
        return f'{self.channels}, power={self.power:g}'


class _RandomFeatures(FeatureMap):
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
                offset_k = offset_k - _graph_max(largest_k.squeeze(-1), segments).unsqueeze(-1)
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
        x, scale = _single(x), self.channels**-0.25
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


class FavorFeatures(_RandomFeatures):
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
class DenseExponentialFeatures(FavorFeatures):
    r"""Dense-exponential random features of the softmax kernel, from `"Dense-Exponential Random Features: Sharp Positive
    Estimators of the Gaussian Kernel" <https://arxiv.org/abs/2302.00787>`_ (the symmetric ones, SDERF), which `"Linear
    Transformer Topological Masking with Graph Random Features" <https://arxiv.org/abs/2410.03462>`_ (App. C.2) names. They are
    positive and unbiased. The graph's own queries and keys decide which directions they measure:

    .. math::
        \phi_i(\mathbf{x}) = \frac{|\mathbf{S}|^{1/2}}{\sqrt{m}} \exp \left( \omega_i^{\top} \mathbf{A} \omega_i +
        \omega_i^{\top} \mathbf{S} \mathbf{x} - \tfrac{1}{2} |\mathbf{x}|^2 \right), \qquad
        \mathbf{S} = (\mathbf{I} - 4 \mathbf{A})^{1/2}, \qquad \mathbf{x} \leftarrow d^{-1/4} \mathbf{x}

    where :math:`\omega_i` are the rows of :math:`\mathbf{\Omega}`. The estimate is unbiased for any symmetric
    :math:`\mathbf{A} \prec \mathbf{I} / 8`. This one minimizes the logarithm of the second moment, on average over all pairs of
    queries and keys of a graph and head (our derivation): it has the eigenvectors of their mean
    :math:`\langle (\mathbf{q} + \mathbf{k}) (\mathbf{q} + \mathbf{k})^{\top} \rangle`, and, for its eigenvalues :math:`z`,

    .. math::
        a = \tfrac{1}{16} \left( 1 - 2 z - \sqrt{(1 + 2 z)^2 + 8 z} \right)

    Gradients do not flow through :math:`\mathbf{A}`. With as many operations, they are closer to softmax attention than
    :class:`FavorFeatures` with 64 features or more in nine of twelve settings of the benchmark ``candidates_softmax``. They
    are not for queries and keys so long that both estimates are worthless. They take longer to compute.

    Example:
        >>> q = k = torch.zeros(1, 1, 4)
        >>> features, _ = DenseExponentialFeatures(4, num_features=8)(q, k)
        >>> features.square().sum()
        tensor(1.0000)
    """

    reads_all_nodes = True

    def _both(self, q: Tensor, k: Tensor, segments: Segments | None) -> Iterable[tuple[Tensor, Tensor, Tensor | None]]:
        bounded = [self._bounded(x) for x in (q, k)]
        vectors = [x * scale for x, _, scale in bounded]
        if segments is None:
            segments = Segments(k.size(0), device=k.device)
        terms = self._matrices(vectors, segments)
        for x, (_, half, _) in zip(vectors, bounded, strict=True):
            yield multiply_by_graph(with_ones(x), terms, segments), -half, None

    @torch.no_grad()
    def _matrices(self, vectors: Sequence[Tensor], segments: Segments) -> Tensor:
        r"""Returns :math:`\mathbf{S} \omega` for each :math:`\omega`, with a last row of
        :math:`\omega^{\top} \mathbf{A} \omega + \log |\mathbf{S}| / 2`, :obj:`[B, H, d + 1, m]`.
        """
        means, moments = [], []
        for x in vectors:
            sums = products_by_graph(with_ones(x), segments)
            sums = sums / sums[..., -1:, -1:].clamp(min=1.0)
            means.append(sums[..., -1, :-1])
            moments.append(sums[..., :-1, :-1])
        cross = means[0].unsqueeze(-1) * means[1].unsqueeze(-2)
        size, axes = torch.linalg.eigh(moments[0] + moments[1] + cross + cross.mT)
        size = size.clamp(min=0.0)  # rounding errors may be negative
        diagonal = (1 - 2 * size - ((1 + 2 * size).square() + 8 * size).sqrt()) / 16
        stretch = (1 - 4 * diagonal).sqrt()
        # Functions of a symmetric matrix depend on it continuously, though its eigenvectors do not.
        along_axes = self.projection.double() @ axes
        shared = torch.einsum('bhmd,bhd->bhm', along_axes.square(), diagonal) + 0.5 * stretch.log().sum(-1, keepdim=True)
        stretched = along_axes * stretch.unsqueeze(-2) @ axes.mT
        return torch.cat([stretched, shared.unsqueeze(-1)], dim=-1).mT.to(vectors[0].dtype)


@described_by(FavorFeatures)
class FourierFeatures(_RandomFeatures):
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


def _single(x: Tensor) -> Tensor:
    r"""Converts to at least single precision, because half precision lacks range for squares and digits for exponentials."""
    return x.to(torch.promote_types(x.dtype, torch.float32))


def _graph_max(x: Tensor, segments: Segments | None) -> Tensor:
    r"""The largest entry of each graph and head, at each of its nodes, for :obj:`x` of shape :obj:`[N, H]`."""
    if x.numel() == 0:
        return x
    return x.amax(0, keepdim=True).expand_as(x) if segments is None else segments.maximum(x)


FEATURE_MAPS: dict[str, type[FeatureMap]] = {
    'relu': ReLUFeatures,
    'elu': EluFeatures,
    'square': SquareFeatures,
    'focused': FocusedFeatures,
    'favor': FavorFeatures,
    'positive': PositiveFeatures,
    'simplex': SimplexFeatures,
    'derf': DenseExponentialFeatures,
    'fourier': FourierFeatures,
    'identity': IdentityFeatures,
}


def feature_map_of_name(name: str, channels: int) -> FeatureMap:
    r"""Returns the feature map with a name in :obj:`FEATURE_MAPS`. The names of random features may include their number, as in
    :obj:`"favor:64"`.

    Example:
        >>> feature_map_of_name('favor:64', 16)
        FavorFeatures(16, num_features=64, orthogonal=True)
    """
    kind, colon, number = name.partition(':')
    random = {key: made for key, made in FEATURE_MAPS.items() if issubclass(made, _RandomFeatures)}
    if kind in FEATURE_MAPS and not colon:
        return FEATURE_MAPS[kind](channels)
    if kind in random and number.isdecimal():
        return random[kind](channels, num_features=int(number))
    raise ArgumentError(
        'feature_map',
        repr(name),
        f'{", ".join(FEATURE_MAPS)}, with a number of features as in favor:64 {", ".join(random)}, and FeatureMap modules',
        'MaskedSoftmaxAttention is exact, and attention(word, feature_map="softmax")' if name == 'softmax' else '',
    )
