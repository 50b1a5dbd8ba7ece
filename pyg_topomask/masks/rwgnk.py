r"""The random walks graph-nodes kernel as a mask."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from pyg_topomask.errors import ArgumentError
from pyg_topomask.graphs.graph import Graph
from pyg_topomask.graphs.segments import Segments
from pyg_topomask.masks.adjacency import AdjacencyMask, AdjacencyState
from pyg_topomask.masks.base.kinds import WalkingMask, warn_of_directed, warn_of_lost_gradient
from pyg_topomask.operators.base import Hadamard, MaskOperator
from pyg_topomask.operators.composed import Alternatives, Chain
from pyg_topomask.operators.forms import Entries, PreparedBlocks, SparseEntries, blocks_of
from pyg_topomask.operators.polynomial import Polynomial, polynomial_blocks, polynomial_terms
from pyg_topomask.utils.checks import check_not_negative, checked_seed, per_head
from pyg_topomask.utils.functorch import readable
from pyg_topomask.utils.options import options_of
from pyg_topomask.utils.precision import widened
from pyg_topomask.walks import WalkSettings
from pyg_topomask.walks.expected import gram_of_powers
from pyg_topomask.walks.features import WalkFeatures
from pyg_topomask.walks.pairs import PairedWalks, blocks_of_sums, paired_walks
from pyg_topomask.walks.stored import load_walks

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from pyg_topomask.masks.options import KernelWalkOptions


# How many multiplications of a product of dense matrices take as long as one of a sparse product.
_DENSE = 8


@dataclass(frozen=True)
class ExpectedVisits:
    r"""The limit of infinitely many walks: the transition probabilities, and :math:`\mathbf{p}_{l,i}^{\top} \mathbf{p}_{l',i}`
    for the rows of their powers, :obj:`[N, L + 1, L + 1]`, if norms need them.
    """

    hops: AdjacencyState
    gram: Tensor | None
    #: The mask blocks of the graphs.
    cache: dict[Hashable, Any] = field(default_factory=dict)


def visits_by_hops(hops: AdjacencyState, survival: Tensor, x: Tensor) -> Tensor:
    r"""Returns :math:`\sum_{l + l' = s} S_l S_{l'} \mathbf{P}^l (\mathbf{P}^{\top})^{l'} \mathbf{x}` for all :math:`s`,
    :obj:`[2L + 1, N, c]`.
    """
    weight, pattern, count = hops.weight.to(x.dtype), hops.pattern, survival.numel()
    sums = x.new_zeros(2 * count - 1, *x.shape)
    for key_hops, collected in enumerate(polynomial_terms(weight, pattern, x, count, 'powers', transpose=True)):
        for query_hops, rows in enumerate(polynomial_terms(weight, pattern, collected, count, 'powers')):
            sums[query_hops + key_hops].add_(rows, alpha=float(survival[query_hops] * survival[key_hops]))
    return sums


def squared_blocks(blocks: Tensor, segments: Segments) -> Tensor:
    r"""Returns the entries of :math:`\mathbf{F} \mathbf{F}^{\top}` at all pairs of nodes of the same graph, by row, :obj:`[H,
    num_pairs]`, for those of :math:`\mathbf{F}`. Differentiable.
    """
    sizes, places, products = segments.sizes, list[Tensor](), list[Tensor]()
    first = sizes.square().cumsum(0) - sizes.square()
    for size in sizes.unique().tolist():
        place = (first[sizes == size].unsqueeze(1) + torch.arange(size * size, device=first.device)).flatten()
        rows = blocks.index_select(1, place).view(len(blocks), -1, size, size)
        places.append(place)
        products.append((rows @ rows.transpose(-1, -2)).flatten(1))
    return torch.zeros_like(blocks).index_copy(1, torch.cat(places), torch.cat(products, dim=1))


@options_of(WalkSettings, without=('normalization', 'importance'))
class RWGNKMask(WalkingMask):
    r"""The random walks graph-nodes kernel, which compares the visits of the random walks of two nodes, from `"From
    block-Toeplitz matrices to differential equations on graphs" <https://arxiv.org/abs/2107.07999>`_ (Sec. 4.2, Eq. 5). Its
    entries are dot products of frequency vectors :math:`\mathbf{F}`, which hold the discounted visits of the walks:

    .. math::
        M_{ij} = \frac{\mathbf{F}_i \mathbf{F}_j^{\top}}{\| \mathbf{F}_i \|_2^{\alpha} \, \| \mathbf{F}_j \|_2^{\alpha}}, \qquad
        \mathbf{F}_i = \mathbb{E} \sum_{l=0}^{L} \lambda^l \, \mathbf{e}_{\omega_l(i)}
        = \mathbf{e}_i \sum_{l=0}^{L} \lambda^l S_l \mathbf{P}^l

    where :math:`\omega_l(i)` is the node of a walk from :math:`i` after :math:`l` hops, :math:`S_l = (1 - p_{halt})^l` is the
    probability that the walk makes :math:`l` hops, and :math:`\mathbf{P} = \mathbf{D}^{-1} \mathbf{A}`. By default,
    :math:`\mathbf{A}` counts edges. With :obj:`transition="weight"`, it has the absolute edge weights. Walks end at rows
    without edges. With :math:`\alpha = 1`, the entries of the mask are cosines. With :math:`\alpha = 0`, on a :math:`d`-regular
    graph, and for walks of unbounded length, the mask is :math:`\Gamma(\rho \mathbf{A} / d)` with :math:`\Gamma(\mathbf{X}) =
    \sum_i (i + 1) \mathbf{X}^i` and :math:`\rho = (1 - p_{halt}) \lambda`. On other graphs, each entry is between the values
    for the smallest and the largest degree (Theorem 4.2). This holds for expectations, not for samples.

    :obj:`num_walks` walks per node estimate the expectation. :obj:`num_walks=None` computes it exactly. Estimates with
    :math:`\alpha = 0` are unbiased off the diagonal, and with two independent ensembles on it. With one ensemble, the diagonal
    is biased upwards by the variance of :math:`\hat{\mathbf{F}}_i`. Estimates with :math:`\alpha > 0` are biased by
    :math:`O(1 / \text{num_walks})`. The variance adds to the squared norms, so entries off the diagonal are too small on
    average (by 6 % with 4 walks on a small graph). With one ensemble and :math:`\alpha = 1`, the diagonal is exactly 1.

    Small graphs on a CPU store the mask as dense blocks. The exact mask uses sparse products in :math:`O(L E)`. With
    :math:`\alpha > 0`, it first computes the norms of rows from sparse powers, in memory that does not grow with the graph, and
    in time that grows with the number of nodes within :math:`L` hops.

    Walks that :class:`~pyg_topomask.transforms.AddRandomWalkKernel` has stored on the data override :obj:`num_walks`,
    :obj:`sampler` and :obj:`seed`, as for a :class:`~pyg_topomask.masks.GRFMask`. They need the :obj:`p_halt`,
    :obj:`walk_length`, :obj:`transition` and :obj:`flow` of the mask. The mask ignores them with :obj:`num_walks=None`.
    Equal graphs get equal walks.

    Gradients flow to :math:`\lambda` and, with :obj:`transition="weight"`, to edge weights that require them, such as those
    that :class:`~pyg_topomask.nn.EdgeWeights` learns. The kernel has the transition probabilities of the weighted random walk,

    .. math::
        P_{ij} = \frac{|w_{ij}|}{\sum_{j'} |w_{ij'}|}

    so a common factor of the weights of a row has no effect. Sampled walks, and the probabilities :math:`\bar{P}` that drew
    them, count as fixed: a visit after the hops :math:`(i_t, i_{t+1})` counts :math:`\prod_t P_{i_t i_{t+1}} /
    \bar{P}_{i_t i_{t+1}} = 1`, whose gradient is unbiased where the mask is. Walks never cross edges of weight 0, which get the
    gradient of the sums of their rows alone. Stored walks hand no gradient on.

    Attention has no direction: walks go against the edges, and nodes whose walks meet attend to each other. The mask warns once
    of a directed graph, where :obj:`GRFMask(asymmetric=True, importance=False)` counts visits and follows the edges.

    Args:
        heads (int): The number of heads, each with its own :math:`\lambda`. (default: that of the layer, or :obj:`1`)
        num_walks (int, optional): Walks per node and ensemble; :obj:`None` for the exact expectation. (default: :obj:`4`)
        p_halt (float): The probability that a walk halts before a hop, in :math:`[0, 1)`; with :obj:`0`, all walks have
            :obj:`max_walk_length` hops. (default: :obj:`0.0`)
        max_walk_length (int): The largest number of hops :math:`L`. (default: :obj:`3`)
        lam (float or torch.Tensor): The initial discount :math:`\lambda > 0` (with :obj:`learnable=False`, also 0), one number
            or :obj:`[heads]`. (default: :obj:`1.0`)
        alpha (float): The normalization exponent :math:`\alpha \ge 0`. (default: :obj:`1.0`)
        learnable (bool): Learn :math:`\lambda`, as its logarithm. (default: :obj:`True`)
        resample (str): When to sample walks, see :class:`~pyg_topomask.masks.GRFMask`. (default: :obj:`"never"`)
        seed (int): The seed of walks that are not resampled. (default: :obj:`0`)

    Raises:
        ValueError: If an argument is outside its range, or stored walks do not fit.

    Shapes:
        - **input:** graphs with :math:`|\mathcal{V}|` nodes and weighted edges
        - **output:** a mask operator :math:`(H, |\mathcal{V}|, |\mathcal{V}|)`
        - **parameters:** :obj:`log_lam` :math:`(H)`

    Example:
        >>> from torch_geometric.data import Data
        >>> mask = RWGNKMask(num_walks=None, max_walk_length=1, lam=0.5, alpha=0.0)
        >>> mask(Data(edge_index=torch.tensor([[0, 1], [1, 0]]), num_nodes=2)).to_dense().detach()
        tensor([[[1.2500, 1.0000],
                 [1.0000, 1.2500]]])
    """

    direction = 'both ways'
    weights_by_head = True
    reads_weights_by = 'transition="weight"'
    initial: Tensor

    def __init__(
        self,
        heads: int = 1,
        num_walks: int | None = 4,
        p_halt: float = 0.0,
        max_walk_length: int = 3,
        lam: Tensor | float = 1.0,
        alpha: float = 1.0,
        learnable: bool = True,
        resample: str = 'never',
        seed: int = 0,
        **options: Unpack[KernelWalkOptions],
    ) -> None:
        super().__init__(heads)
        self.exact = num_walks is None
        self.form = 'product' if self.exact else 'sparse'
        walks = 2 if num_walks is None else num_walks
        settings = WalkSettings(walks, p_halt, max_walk_length, normalization='rw', importance=False, **options)
        self._walk(settings, resample)
        check_not_negative(alpha=alpha)
        given = per_head(heads, lam=lam)
        if not bool((given >= 0).all()) or (learnable and not bool((given > 0).all())):
            accepted = 'finite numbers from 0, above 0 where their logarithm is learned'
            raise ArgumentError('lam', f'{given.tolist()} with learnable={learnable}', accepted)
        # Entries contain the product of two discounts.
        limit = torch.finfo(torch.get_default_dtype()).max ** (1 / (2 * max_walk_length + 2))
        if bool((given > limit).any()):
            raise ArgumentError('lam', f'{given.tolist()} for walks of {max_walk_length} hops', f'numbers up to {limit:.3g}')
        self.alpha = alpha
        self.seed = checked_seed(seed=seed)
        self.initial = given.log()
        self.log_lam = torch.nn.Parameter(torch.empty(heads), requires_grad=learnable)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        with torch.no_grad():
            self.log_lam.copy_(self.initial)

    @property
    def learns_weights(self) -> bool:  # type: ignore[override]
        return self.weighted

    @property
    def lam(self) -> Tensor:
        r"""The discount :math:`\lambda`, :obj:`[heads]`."""
        return widened(self.log_lam).exp()

    @property
    def discounts(self) -> Tensor:
        r"""The powers :math:`\lambda^0, \dots, \lambda^L`, :obj:`[heads, L + 1]`."""
        lam = self.lam
        return lam.unsqueeze(1) ** torch.arange(self.walk_settings.max_walk_length + 1, device=lam.device)

    def settings(self) -> Hashable:
        prepared = (self.alpha > 0,) if self.exact else (self.seed, self.fresh)
        return type(self), self.walk_settings, *prepared

    def prepare(self, graph: Graph, generator: torch.Generator | None = None) -> ExpectedVisits | PairedWalks:
        if self.exact:
            return self._expect(graph)
        settings, learned = self.walk_settings, self.weighted and graph.weight.requires_grad
        seed = None if self.fresh or generator is not None else self.seed
        stored = load_walks(graph, settings, 'rwgnk') if seed is not None else None
        if stored is None:
            return paired_walks(graph, settings, seed, generator, self.fresh, learned)
        if self.weighted:
            warn_of_lost_gradient(self, graph)
        return PairedWalks(*stored)

    def _expect(self, graph: Graph) -> ExpectedVisits:
        weight = graph.weight.abs() if self.weighted else torch.ones_like(graph.weight)
        hops = AdjacencyMask(1, None, 'rw', self.flow).prepare(graph.with_weights(weight))
        if self.alpha == 0:
            return ExpectedVisits(hops, None)
        return ExpectedVisits(
            hops, gram_of_powers(hops.weight, hops.pattern, self.walk_settings.max_walk_length, graph.num_nodes)
        )

    def bind(self, graph: Graph, state: ExpectedVisits | PairedWalks) -> MaskOperator:
        warn_of_directed(self, graph, 'GRFMask(asymmetric=True, importance=False), which counts visits too,')
        if isinstance(state, ExpectedVisits):
            return self._bind_expected(graph, state)
        discounts = self.discounts
        values: dict[int, Tensor] = {}

        def vectors(walks: WalkFeatures) -> Tensor:
            if id(walks) not in values:
                values[id(walks)] = walks.values(discounts)
            return values[id(walks)]

        def scale_of(walks: WalkFeatures) -> Tensor:
            return self.scale(walks, discounts, vectors(walks) if state.learned else None)

        def features(walks: WalkFeatures) -> MaskOperator:
            value = vectors(walks) * scale_of(walks).t().index_select(1, walks.pattern.row)
            return walks.operator(graph, value, self.heads)

        def product() -> MaskOperator:
            query = features(state.query)
            return Chain((query, query.T if state.key is state.query else features(state.key).T))

        norm = self._typical_norm
        column_scale = scale_of(state.key) * norm if self.alpha > 0 else None

        def combined(walks: PairedWalks) -> Entries:
            if walks.learned:
                return walks.products(*(vectors(each) / norm.unsqueeze(1) for each in (walks.query, walks.key)))
            scaled = discounts / norm.unsqueeze(1)
            pairs = walks.pairs(discounts.dtype, 'sums')
            return Entries(pairs.pattern, pairs.values(scaled, scaled))

        def blocks(segments: Segments, dtype: torch.dtype) -> Tensor:
            return blocks_of_sums(state.query, state.key, dtype, segments)

        entries = state.listed(combined, estimated=True)
        if entries is not None and column_scale is not None:
            row_scale = column_scale if state.key is state.query else scale_of(state.query) * norm
            entries = _weighted_entries(entries, row_scale[: graph.num_nodes], column_scale[: graph.num_nodes])
        prepared = None
        if not state.learned:
            powers = self._powers(discounts) / norm.square().unsqueeze(1)
            prepared = PreparedBlocks(powers, blocks, state.cache, 0, column_scale=column_scale)
        cost = state.num_features
        return Alternatives(product, entries, prepared, segments=graph.segments, heads=self.heads, cost=cost)

    def _powers(self, discounts: Tensor) -> Tensor:
        r"""Returns the powers of the discount of two walks together, :obj:`[heads, 2L + 1]`."""
        return self.lam.unsqueeze(1) ** torch.arange(2 * discounts.size(1) - 1, device=discounts.device)

    def scale(self, walks: WalkFeatures, discounts: Tensor, value: Tensor | None = None) -> Tensor:
        r"""Returns the factors that normalize frequency vectors, :obj:`[N, H]`. Given entries of these, :obj:`[H, nnz]`, hand
        gradients on.
        """
        unit = self._unit
        if value is not None:
            value, row = value / unit.sqrt().unsqueeze(1), walks.pattern.row
            squares = value.new_zeros(walks.num_nodes, value.size(0)).index_add(0, row, value.square().t())
        else:
            squares = walks.squares.to(discounts.dtype) @ (self._powers(discounts) / unit.unsqueeze(1)).t()
        # Walks visit their start node, so no norm is below 1. Nodes without walks have none.
        return self._inverse_norms(squares.clamp(min=unit.reciprocal()))

    def expected_scale(self, series: Tensor, gram: Tensor) -> Tensor:
        r"""Returns the factors that normalize expected frequency vectors with the coefficients of the powers, :obj:`[N, H]`."""
        scaled = series / self._unit.sqrt().unsqueeze(1)
        return self._inverse_norms(torch.einsum('hl,nlk,hk->nh', scaled, gram.to(series), scaled))

    @property
    def _unit(self) -> Tensor:
        r"""Constants in whose units squared norms are computed, :obj:`[heads]`. Otherwise, their gradients would underflow for
        large discounts.
        """
        return self.lam.detach().clamp(min=1.0) ** self.walk_settings.max_walk_length

    @property
    def _typical_norm(self) -> Tensor:
        r"""Constants near :math:`\|\cdot\|^{\alpha}` of frequency vectors, :obj:`[heads]`. They keep products of these vectors
        near 1 for large discounts. Otherwise, a row whose keys all have tiny features would not count as a zero row, and its
        gradients would overflow.
        """
        return self._unit**self.alpha

    def _inverse_norms(self, squares: Tensor) -> Tensor:
        r"""Returns :math:`\|\cdot\|^{-\alpha}` from squared norms in units of :attr:`_unit`."""
        exponent = -self.alpha / 2
        return squares**exponent * self._unit**exponent

    def _bind_expected(self, graph: Graph, state: ExpectedVisits) -> MaskOperator:
        pattern, discounts = state.hops.pattern, self.discounts
        weight = state.hops.weight.to(discounts.dtype)
        series = discounts * self.walk_settings.survival.to(discounts)
        cost = (series.size(1) - 1) * (pattern.nnz + graph.num_nodes) + 2 * graph.num_nodes
        visited = Polynomial(
            series, weight.unsqueeze(0), pattern, 'powers', segments=graph.segments, heads=self.heads, cost=cost
        )
        product: MaskOperator = Chain((visited, visited.T))
        powers, norm, column_scale = self._powers(discounts), self._typical_norm, None
        if state.gram is not None:
            scale = self.expected_scale(series, state.gram)
            product = Hadamard(scale.unsqueeze(-1), scale.unsqueeze(-1), product)
            column_scale = scale * norm

        def visits(segments: Segments, dtype: torch.dtype) -> Tensor:
            each = torch.eye(powers.size(1), dtype=dtype, device=powers.device)
            return blocks_of(lambda x: visits_by_hops(state.hops, self.walk_settings.survival, x), each, segments)

        def learned_visits(segments: Segments, dtype: torch.dtype) -> Tensor:
            scaled = (series / norm.unsqueeze(1)).to(dtype)
            return squared_blocks(polynomial_blocks(weight.to(dtype), pattern, scaled, 'powers', segments), segments)

        blocks = None
        if not weight.requires_grad:
            powers, cost = powers / norm.square().unsqueeze(1), (series.size(1) ** 2 - 1) * pattern.nnz
            blocks = PreparedBlocks(powers, visits, state.cache, cost, column_scale=column_scale)
        elif readable(weight):  # the blocks of each head, made at every call
            each = torch.eye(self.heads, dtype=weight.dtype, device=weight.device)
            cost += self.heads * graph.num_nodes * graph.segments.largest // _DENSE
            blocks = PreparedBlocks(each, learned_visits, None, cost, column_scale=column_scale)
        return Alternatives(product, None, blocks, segments=graph.segments, heads=self.heads, cost=product.cost)

    def extra_repr(self) -> str:
        return (
            f'heads={self.heads}, {"exact, " if self.exact else ""}{self.walk_settings.text}{self._changed()}{self._directed()}'
        )


def _weighted_entries(entries: SparseEntries, row_scale: Tensor, column_scale: Tensor) -> SparseEntries:
    r"""Returns the entries times factors of rows and of columns, :obj:`[N, H]` each."""
    scaled = entries.weighted(row_scale.unsqueeze(-1), column_scale.unsqueeze(-1))
    return replace(scaled, make_without_row_scale=lambda: (entries.make(), column_scale))
