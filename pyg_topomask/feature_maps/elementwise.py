r"""Feature maps without random numbers."""

from __future__ import annotations

from abc import abstractmethod

import torch
from torch import Tensor

from pyg_topomask.feature_maps.feature_map import FeatureMap, graph_max
from pyg_topomask.graphs.segments import Segments
from pyg_topomask.ops.normalize import in_range, power_of_two, row_size
from pyg_topomask.utils.checks import check_above_zero
from pyg_topomask.utils.options import described_by
from pyg_topomask.utils.precision import widened

__all__ = ['EluFeatures', 'FocusedFeatures', 'IdentityFeatures', 'ReLUFeatures', 'SquareFeatures']


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
        q, k = widened(q), widened(k)
        features = self._map(q), self._map(k)
        if in_range(*features, zeros=False):
            return features
        # Features of negative entries are exponentials.
        highest_q, highest_k = q.detach().amax(-1, keepdim=True), graph_max(k.detach().amax(-1), segments).unsqueeze(-1)
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
        q, k = widened(q), widened(k)
        if not in_range(q, k):
            q = q / power_of_two(row_size(q)).unsqueeze(-1)
            k = k / power_of_two(graph_max(row_size(k), segments)).unsqueeze(-1)
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
            x = widened(x).relu()
            # Dividing by the largest entry cancels, also in the gradient. Without it, powers and squares would overflow.
            largest = x.detach().amax(-1, keepdim=True)
            unit = x / largest.masked_fill(largest == 0, 1.0)
            # For p < 1, powers have no gradient at 0, and do not need one.
            sharp = torch.where(unit > 0, unit, 1.0).pow(self.power) * (unit > 0)
            length = sharp.norm(dim=-1, keepdim=True).masked_fill(largest == 0, 1.0)
            return sharp * (unit.norm(dim=-1, keepdim=True) / length) * largest

    def extra_repr(self) -> str:
        return f'{self.channels}, power={self.power:g}'
