r"""Masks of low rank that read no edges: ones, valid nodes, given factors, learned features, and encodings of positions."""

from __future__ import annotations

import math
from collections.abc import Hashable

import torch
from torch import Tensor

from pyg_topomask.errors import ArgumentError
from pyg_topomask.graphs.graph import Graph
from pyg_topomask.masks.base.kinds import GivenMask, as_floating_point, check_entries
from pyg_topomask.masks.base.mask import Mask
from pyg_topomask.operators.base import MaskOperator, low_rank_operator
from pyg_topomask.utils.checks import MAX_NODES, check_finite, check_size, check_whole, checked_seed, described
from pyg_topomask.utils.precision import wide_dtype
from pyg_topomask.utils.random import generator_on


class PackingMask(Mask):
    r"""Unmasked linear attention within each graph of a batch, from `"From block-Toeplitz matrices to differential equations
    on graphs" <https://arxiv.org/abs/2107.07999>`_ (Sec. 3):

    .. math::
        M_{ij} = 1 \text{ if nodes } i \text{ and } j \text{ are in the same graph, else } 0

    A product is a sum over each graph and takes :math:`O(N)`.

    The mask ignores edges.

    Args:
        heads (int): The number of heads. (default: :obj:`1`)

    Shapes:
        - **input:** graphs with :math:`|\mathcal{V}|` nodes
        - **output:** a mask operator :math:`(H, |\mathcal{V}|, |\mathcal{V}|)`

    Example:
        >>> from torch_geometric.data import Data
        >>> PackingMask()(Data(num_nodes=2)).to_dense()
        tensor([[[1., 1.],
                 [1., 1.]]])
    """

    form = 'low_rank'
    direction = 'unused'

    def prepare(self, graph: Graph, generator: torch.Generator | None = None) -> None:
        return None

    def bind(self, graph: Graph, state: None) -> MaskOperator:
        ones = torch.ones(1, 1, 1, device=graph.device).expand(graph.num_nodes, self.heads, 1)
        return low_rank_operator(graph, ones, ones)


class PaddingMask(Mask):
    r"""Ones between the valid nodes of a graph, and zeros elsewhere, from `"From block-Toeplitz matrices to differential
    equations on graphs" <https://arxiv.org/abs/2107.07999>`_ (Sec. 3):

    .. math::
        M_{ij} = v_i v_j \text{ for nodes of the same graph, else } 0, \qquad v_i = 1 \text{ for valid nodes, else } 0

    No node attends to padded nodes, and the output of padded nodes is 0. The mask has rank 1 within a graph, so you can
    multiply any mask by it: :obj:`mask * PaddingMask()` excludes the padded nodes. A product takes :math:`O(N)`.

    The mask ignores edges.

    Args:
        heads (int): The number of heads. (default: :obj:`1`)
        valid (str): The name of a boolean node attribute of the data, :obj:`[N]`. (default: :obj:`"valid"`)

    Raises:
        ValueError: If the attribute is missing, is not boolean, or does not fit the nodes.

    Shapes:
        - **input:** graphs with :math:`|\mathcal{V}|` nodes, the attribute :obj:`valid` :math:`(|\mathcal{V}|)`
        - **output:** a mask operator :math:`(H, |\mathcal{V}|, |\mathcal{V}|)`

    Example:
        >>> from torch_geometric.data import Data
        >>> PaddingMask()(Data(valid=torch.tensor([True, False]), num_nodes=2)).to_dense()
        tensor([[[1., 0.],
                 [0., 0.]]])
    """

    form = 'low_rank'
    direction = 'unused'

    def __init__(self, heads: int = 1, valid: str = 'valid') -> None:
        super().__init__(heads)
        self.valid = valid

    def settings(self) -> Hashable:
        return type(self), self.valid

    def prepare(self, graph: Graph, generator: torch.Generator | None = None) -> Tensor:
        valid = graph.attribute(self.valid, 'valid')
        if not isinstance(valid, Tensor) or valid.shape != (graph.num_nodes,) or valid.dtype != torch.bool:
            given = f'{self.valid!r} with {described(valid)}'
            raise ArgumentError('valid', given, f'a boolean tensor of shape [{graph.num_nodes}]')
        return valid.to(torch.get_default_dtype()).view(-1, 1, 1)

    def bind(self, graph: Graph, state: Tensor) -> MaskOperator:
        factor = state.expand(-1, self.heads, -1)
        return low_rank_operator(graph, factor, factor)


class LowRankMask(GivenMask):
    r"""A low-rank mask with given factors, :math:`\mathbf{M} = \mathbf{A} \mathbf{B}^{\top}` within each graph. The factors are
    tensors, or names of node attributes, which are batched and moved with the data. A product takes :math:`O(N r)`.

    The mask ignores edges.

    Args:
        heads (int): The number of heads. (default: :obj:`1`)
        left (torch.Tensor or str): :math:`\mathbf{A}`, :obj:`[N, r]` or :obj:`[N, heads, r]`. (default: :obj:`"mask_left"`)
        right (torch.Tensor or str): :math:`\mathbf{B}`, with one of these shapes. (default: :obj:`"mask_right"`)

    Raises:
        ValueError: If the factors are missing from the data, are not finite, or do not fit each other, the nodes or the heads.

    Shapes:
        - **input:** graphs with :math:`|\mathcal{V}|` nodes, two factors :math:`(|\mathcal{V}|, r)` or
          :math:`(|\mathcal{V}|, H, r)`
        - **output:** a mask operator :math:`(H, |\mathcal{V}|, |\mathcal{V}|)`

    Example:
        >>> from torch_geometric.data import Data
        >>> LowRankMask(left=torch.tensor([[1.], [2.]]), right=torch.tensor([[3.], [4.]]))(Data(num_nodes=2)).to_dense()
        tensor([[[3., 4.],
                 [6., 8.]]])
    """

    form = 'low_rank'
    direction = 'unused'

    def __init__(self, heads: int = 1, left: Tensor | str = 'mask_left', right: Tensor | str = 'mask_right') -> None:
        super().__init__(heads)
        self._names: dict[str, str] = {}
        for name, factor in (('left', left), ('right', right)):
            if isinstance(factor, str):
                self._names[name] = factor
                continue
            if not isinstance(factor, Tensor):
                raise ArgumentError(name, repr(factor), 'a tensor and the name of an attribute of the data')
            self._keep(name, factor)

    def prepare(self, graph: Graph, generator: torch.Generator | None = None) -> None:
        for name in self._names:  # once per graph, because it synchronizes with the GPU
            check_entries(name, self._factor(graph, name))

    def bind(self, graph: Graph, state: None) -> MaskOperator:
        left, right = self._factor(graph, 'left'), self._factor(graph, 'right')
        if left.size(-1) != right.size(-1):
            raise ArgumentError('right', f'rank {right.size(-1)} for left of rank {left.size(-1)}', 'equal ranks')
        return low_rank_operator(graph, left, right)

    def _factor(self, graph: Graph, name: str) -> Tensor:
        attribute = self._names.get(name)
        factor: Tensor = getattr(self, name) if attribute is None else graph.attribute(attribute, name)
        if not isinstance(factor, Tensor):
            raise ArgumentError(name, f'{attribute!r} with {type(factor).__name__}', 'a tensor')
        factor = as_floating_point(name, factor)
        if factor.dim() == 2:
            factor = factor.unsqueeze(1)
        rows, heads, rank = factor.shape if factor.dim() == 3 else (-1, 0, 0)
        if rows != graph.num_nodes or heads not in (1, self.heads) or rank == 0:
            given = f'shape {tuple(factor.shape)} for {graph.num_nodes} nodes and {self.heads} heads'
            raise ArgumentError(name, given, '[N, r] and [N, heads, r] of rank r from 1')
        return factor.expand(-1, self.heads, -1)


class LearnedFeaturesMask(Mask):
    r"""A mask of learned node features, :math:`\mathbf{M} = \Phi \Phi^{\top}` within each graph. It is the ablation "fully
    learnable features" in `"Linear Transformer Topological Masking with Graph Random Features"
    <https://arxiv.org/abs/2410.03462>`_ (App. C.2, Table 3). The features belong to positions in the graph, so the nodes of all
    graphs must have the same fixed order, such as the pixels of images. The mask ignores edges. A product takes
    :math:`O(N \, \text{rank})`.

    Args:
        heads (int): The number of heads. (default: that of the layer, or :obj:`1`)
        num_nodes (int): The largest number of nodes of a graph. (default: :obj:`1`)
        rank (int, optional): The number of features. (default: :obj:`num_nodes`, as in the paper)

    Raises:
        ValueError: If a number is below 1, or a graph has more nodes.

    Shapes:
        - **input:** graphs with at most :obj:`num_nodes` nodes each
        - **output:** a mask operator :math:`(H, |\mathcal{V}|, |\mathcal{V}|)`
        - **parameters:** :obj:`features` :math:`(\text{num\_nodes}, H, \text{rank})`

    Example:
        >>> from torch_geometric.data import Data
        >>> LearnedFeaturesMask(heads=2, num_nodes=3)(Data(num_nodes=3)).to_dense().shape
        torch.Size([2, 3, 3])
    """

    form = 'low_rank'
    direction = 'unused'

    def __init__(self, heads: int = 1, num_nodes: int = 1, rank: int | None = None) -> None:
        super().__init__(heads)
        rank = num_nodes if rank is None else rank
        check_whole(1, MAX_NODES, num_nodes=num_nodes)
        check_size(rank=rank)
        self.features = torch.nn.Parameter(torch.empty(num_nodes, heads, rank))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        # Entries of M start near 1, as in unmasked attention, with noise that distinguishes the features.
        scale = self.features.size(-1) ** -0.5
        torch.nn.init.normal_(self.features, mean=scale, std=0.1 * scale)

    def settings(self) -> Hashable:
        return type(self)

    def prepare(self, graph: Graph, generator: torch.Generator | None = None) -> Tensor:
        return graph.segments.position

    def bind(self, graph: Graph, state: Tensor) -> MaskOperator:
        if graph.segments.largest > self.features.size(0):
            raise ArgumentError(
                'num_nodes',
                f'{self.features.size(0)} for a graph of {graph.segments.largest} nodes',
                'graphs with at most as many',
            )
        factor = self.features.index_select(0, state)
        return low_rank_operator(graph, factor, factor)

    def extra_repr(self) -> str:
        return f'heads={self.heads}, num_nodes={self.features.size(0)}, rank={self.features.size(-1)}{self._directed()}'


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
        dtype = wide_dtype(self.gain)
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
