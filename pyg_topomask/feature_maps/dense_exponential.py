r"""Dense-exponential random features of the softmax kernel."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import torch
from torch import Tensor

from pyg_topomask.feature_maps.random_features import FavorFeatures
from pyg_topomask.graphs.segments import Segments, multiply_by_graph, products_by_graph
from pyg_topomask.ops.normalize import with_ones
from pyg_topomask.utils.options import described_by

__all__ = ['DenseExponentialFeatures']


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
