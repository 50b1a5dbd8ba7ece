r"""Stochastic relative positional encodings as low-rank masks."""

from __future__ import annotations

import math
from collections.abc import Hashable

import torch
from torch import Tensor

from pyg_topomask.graphs.graph import Graph
from pyg_topomask.masks.base.mask import Mask
from pyg_topomask.operators.base import MaskOperator
from pyg_topomask.operators.given import low_rank_operator
from pyg_topomask.utils.checks import check_finite, check_size, checked_seed
from pyg_topomask.utils.random import generator_on


class StochasticRPEMask(Mask):
    r"""A function of relative positions in a sequence, estimated by random features, from `"From block-Toeplitz matrices to
    differential equations on graphs" <https://arxiv.org/abs/2107.07999>`_ (Sec. 3.4), with the sinusoidal encoding of
    `"Relative Positional Encoding for Transformers with Linear Complexity" <https://arxiv.org/abs/2105.08399>`_ (Sec. 2.2). In
    expectation,

    .. math::
        M_{ij} = \exp(N_{ij}), \qquad N_{ij} = \sum_k g_k^2 \cos(2 \pi f_k (i - j) + \theta_k)

    for the positions :math:`i` and :math:`j` of nodes in their graph, with learnable gains :math:`g`, frequencies :math:`f` and
    phases :math:`\theta` per head. :math:`N_{ij}` is an inner product of sines and cosines. Its exponential is the mean of
    products of positive random features (`"Rethinking Attention with Performers" <https://arxiv.org/abs/2009.14794>`_, Lemma
    1), so the mask has low rank and positive entries. Its variance grows with :math:`\exp(2 \sum_k g_k^2)`. The random
    projection depends only on the seed, and :meth:`redraw` draws a new one. A product takes :math:`O(N \,
    \text{num\_features})`.

    The mask ignores edges.

    Args:
        heads (int): The number of heads. (default: that of the layer, or :obj:`1`)
        num_sines (int): The number of sines. (default: :obj:`4`)
        num_features (int): The number of random features, the rank of the mask. (default: :obj:`16`)
        gain (float): The initial :math:`g`. (default: :obj:`0.5`)
        seed (int): The seed of the projection. (default: :obj:`0`)

    Raises:
        ValueError: If a number is below 1, or the gain is not finite.

    Shapes:
        - **input:** graphs with :math:`|\mathcal{V}|` nodes
        - **output:** a mask operator :math:`(H, |\mathcal{V}|, |\mathcal{V}|)`
        - **parameters:** :obj:`gain`, :obj:`frequency` and :obj:`phase` :math:`(H, \text{num\_sines})`

    Example:
        >>> from torch_geometric.data import Data
        >>> StochasticRPEMask(heads=2)(Data(num_nodes=3)).to_dense().shape
        torch.Size([2, 3, 3])
    """

    form = 'low_rank'
    direction = 'unused'

    projection: Tensor

    def __init__(self, heads: int = 1, num_sines: int = 4, num_features: int = 16, gain: float = 0.5, seed: int = 0) -> None:
        super().__init__(heads)
        check_size(num_sines=num_sines, num_features=num_features)
        check_finite(gain=gain)
        self.initial_gain = gain
        self.seed = checked_seed(seed=seed)
        self.gain = torch.nn.Parameter(torch.empty(heads, num_sines))
        self.frequency = torch.nn.Parameter(torch.empty(heads, num_sines))
        self.phase = torch.nn.Parameter(torch.empty(heads, num_sines))
        self.register_buffer('projection', torch.empty(num_features, 2 * num_sines))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        torch.nn.init.constant_(self.gain, self.initial_gain)
        # Periods from 4 to 4 * 2^num_sines nodes. The phases put the maximum at the node itself.
        periods = 4.0 * 2.0 ** torch.arange(self.frequency.size(1), device=self.frequency.device)
        with torch.no_grad():
            self.frequency.copy_(periods.reciprocal())
        torch.nn.init.zeros_(self.phase)
        self.redraw(torch.Generator().manual_seed(self.seed))

    @torch.no_grad()
    def redraw(self, generator: torch.Generator | None = None) -> None:
        r"""Draws a new projection."""
        generator = generator_on(torch.device('cpu'), generator)
        self.projection.copy_(torch.randn(self.projection.shape, generator=generator))

    def settings(self) -> Hashable:
        return type(self)

    def prepare(self, graph: Graph, generator: torch.Generator | None = None) -> Tensor:
        return graph.segments.position

    def bind(self, graph: Graph, state: Tensor) -> MaskOperator:
        dtype = torch.promote_types(self.gain.dtype, torch.float32)
        # In float64, because in float32, angles far into a sequence would be wrong by whole radians.
        turns = state.double().view(-1, 1, 1) * self.frequency.double()
        angle = 2 * math.pi * (turns - turns.detach().floor())
        return low_rank_operator(graph, self._features(angle + self.phase, dtype), self._features(angle, dtype))

    def _features(self, angle: Tensor, dtype: torch.dtype) -> Tensor:
        angle, gain = angle.to(dtype), self.gain.to(dtype)
        vectors = torch.cat([gain * angle.cos(), gain * angle.sin()], dim=-1)
        exponent = vectors @ self.projection.to(dtype).t() - 0.5 * gain.square().sum(-1, keepdim=True)
        return exponent.exp() / math.sqrt(self.projection.size(0))

    def extra_repr(self) -> str:
        rank, width = self.projection.shape
        return f'heads={self.heads}, num_sines={width // 2}, num_features={rank}{self._changed()}{self._directed()}'
