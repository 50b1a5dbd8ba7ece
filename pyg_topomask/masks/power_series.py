r"""Exact power series of the weighted adjacency matrix."""

from __future__ import annotations

from collections.abc import Hashable
from functools import partial
from typing import Any

import numpy as np
import scipy
import torch
from torch import Tensor

from pyg_topomask.errors import ArgumentError, warn
from pyg_topomask.graphs.edges import check_flow, check_normalization
from pyg_topomask.graphs.graph import Graph
from pyg_topomask.graphs.segments import Segments
from pyg_topomask.graphs.sparse_pattern import SparsePattern, count_within
from pyg_topomask.machine.backend import kernel
from pyg_topomask.masks.adjacency import AdjacencyMask, AdjacencyState
from pyg_topomask.masks.base.kinds import LogarithmicMask
from pyg_topomask.masks.base.mask import Mask
from pyg_topomask.masks.base.series import convolve, deconvolve, initial_series, resolve_positive
from pyg_topomask.operators.base import MaskOperator
from pyg_topomask.operators.composed import Alternatives
from pyg_topomask.operators.forms import MAX_ENTRIES, Entries, PreparedBlocks, SparseEntries
from pyg_topomask.operators.polynomial import Polynomial, polynomial_blocks
from pyg_topomask.operators.sparse_matmul import multiply
from pyg_topomask.ops.normalize import known_positive
from pyg_topomask.utils.checks import check_choice, check_size
from pyg_topomask.utils.functorch import is_exporting
from pyg_topomask.walks.features import WalkFeatures

# The largest number of entries of all powers to list by default, about two gigabytes while they are listed.
_MOST_LISTED = 2**25


def power_entries(
    graph: Graph, settings: Hashable, pattern: SparsePattern, value: Tensor, coefficients: Tensor
) -> SparseEntries | None:
    r"""Returns the entries of a power series :math:`\sum_k \alpha_k \mathbf{W}^k` with coefficients :obj:`[H, K + 1]`, for a
    :math:`\mathbf{W}` of some settings with entries :obj:`value` at a pattern. They are listed once per graph when they are
    called for, and the coefficients of each head combine them. Their number is an estimate, and unknown if the powers have many
    entries. Returns :obj:`None` if the entries of :math:`\mathbf{W}` are learned, or if torch.compile traces the call and the
    powers are not listed yet.
    """
    order = coefficients.size(1) - 1
    key = ('powers', settings, order)
    if value.requires_grad or (torch.compiler.is_compiling() and not graph.has_cached(key)):
        return None
    powers = partial(graph.cached, key, partial(_listed, pattern, value.detach(), order))
    count = graph.cached(('count', *key), partial(count_within, pattern, order))
    # If most pairs have an entry, combining the powers is faster than listing the entries.
    fits = count * (order + 1) <= _MOST_LISTED and (torch.compiler.is_compiling() or 2 * count <= graph.segments.num_pairs)

    def make() -> Entries:
        listed = powers()
        return Entries(listed.pattern, listed.values(coefficients))

    # Without a count, only route='edges' uses the entries.
    return SparseEntries(make, count if fits or count > MAX_ENTRIES else None)


@torch.compiler.disable  # torch.compile would read SciPy as Python
def _listed(pattern: SparsePattern, value: Tensor, order: int) -> WalkFeatures:
    r"""Returns the entries of :math:`\mathbf{W}^k` as the loads of walks of :math:`k` hops from the row to the column. Random
    walks estimate these loads.
    """
    size = pattern.num_rows
    if compiled := kernel('patterns.power_loads', value.device):
        start, visited, length, loads = compiled(pattern, value.double(), order)
        return WalkFeatures(start, visited, length, loads, size, order)
    powers, step = [scipy.sparse.eye_array(size, format='csr')], pattern.to_scipy(value.double())
    for _ in range(order):
        powers.append(powers[-1] @ step)
    entries = [power.tocoo() for power in powers]
    row, col, load = (np.concatenate([getattr(power, name) for power in entries]) for name in ('row', 'col', 'data'))
    hops = np.repeat(np.arange(order + 1), [power.nnz for power in entries])
    start, visited, length, loads = (torch.from_numpy(array).to(value.device) for array in (row, col, hops, load))
    return WalkFeatures.from_visits(start, visited, length, loads, size, order)


class PowerSeriesMask(LogarithmicMask):
    r"""A learnable power series of the weighted adjacency matrix, computed exactly, from `"Linear Transformer Topological
    Masking with Graph Random Features" <https://arxiv.org/abs/2410.03462>`_ (Sec. 3.1, Eq. 4):

    .. math::
        \mathbf{M} = \sum_{k=0}^{K} \alpha_k \mathbf{W}^k

    A product with :math:`\mathbf{M}` takes :math:`K` products with :math:`\mathbf{W}`, :math:`O(K E)`. If the powers have few
    entries, they are listed once per graph, and attention runs along these entries. Small graphs on a CPU store the powers as
    dense blocks. Gradients flow to the coefficients and to edge weights that require them. Initial coefficients of a kernel are
    stored in float64. After :obj:`mask.double()`, :meth:`reset_parameters` restores them in this precision.

    Edges are followed: a node attends to nodes from which edges lead to it. :obj:`flow` reverses this.

    Args:
        heads (int): The number of heads, each with its own coefficients. (default: that of the layer, or :obj:`1`)
        order (int): The largest power :math:`K \ge 0`. (default: :obj:`4`)
        coefficients (torch.Tensor or str, optional): The initial :math:`\alpha`, :obj:`[K + 1]` or :obj:`[heads, K + 1]`, or a
            name. :obj:`None` is :math:`\alpha_k = 2^{-k}`. A name is a kernel of
            :func:`~pyg_topomask.masks.kernel_series`, such as :obj:`"heat:0.5"`, or :obj:`"hops"`, with which heads start at
            different hops: :math:`\alpha_k = 1` for :math:`k = h \bmod (K + 1)` in head :math:`h`, and
            :math:`\alpha_k = 0.02` otherwise. The mask warns if :obj:`order` omits a power of a polynomial or more than a
            tenth of a series. (default: :obj:`None`)
        parameterization (str): :obj:`"alpha"` learns :math:`\alpha`. :obj:`"f"` learns :math:`f` with :math:`\alpha = f * f`
            (convolution). The mask is then positive semi-definite for symmetric :math:`\mathbf{W}`. :math:`f` has
            :math:`\lfloor K / 2 \rfloor + 1` entries, and an odd order is reduced by one. :obj:`coefficients` then sets
            :math:`\alpha` up to the power :math:`\lfloor K / 2 \rfloor`, or :math:`f` itself for :obj:`"hops"`.
            (default: :obj:`"alpha"`)
        normalization (str, optional): That of :math:`\mathbf{W}`, see :class:`~pyg_topomask.masks.AdjacencyMask`. With
            :obj:`None`, the mask warns if the powers grow faster than the coefficients decay. (default: :obj:`"sym"`)
        learnable (bool): Learn the coefficients. (default: :obj:`True`)
        positive (bool, optional): Learn the logarithm of the coefficients, which then stay above 0. Training is more
            stable. :obj:`None` is :obj:`True` if all initial values are above 0. (default: :obj:`None`)
        flow (str): The direction of attention along edges, see :class:`~pyg_topomask.masks.AdjacencyMask`.
            (default: :obj:`"source_to_target"`)

    Raises:
        ValueError: If an argument is outside its range, or the coefficients do not have :math:`K + 1` entries per head
            (:math:`\lfloor K / 2 \rfloor + 1` with :obj:`parameterization="f"`).

    Shapes:
        - **input:** graphs with :math:`|\mathcal{V}|` nodes and weighted edges
        - **output:** a mask operator :math:`(H, |\mathcal{V}|, |\mathcal{V}|)`
        - **parameters:** :obj:`coefficients` :math:`(H, K + 1)`, or :math:`(H, \lfloor K / 2 \rfloor + 1)` with
          :obj:`parameterization="f"`

    Example:
        >>> from torch_geometric.data import Data
        >>> mask = PowerSeriesMask(order=1, coefficients=torch.tensor([1.0, 0.5]))
        >>> mask(Data(edge_index=torch.tensor([[0, 1], [1, 0]]), num_nodes=2)).to_dense().detach()
        tensor([[[1.0000, 0.5000],
                 [0.5000, 1.0000]]])
    """

    #: Without entries if edge weights are learned.
    form = 'sparse'
    renumbers = 'graph'
    direction = 'followed'
    weights_by_head = True
    shown = ('order', 'normalization')

    def __init__(
        self,
        heads: int = 1,
        order: int = 4,
        coefficients: Tensor | str | None = None,
        parameterization: str = 'alpha',
        normalization: str | None = 'sym',
        learnable: bool = True,
        positive: bool | None = None,
        flow: str = 'source_to_target',
    ) -> None:
        super().__init__(heads)
        check_size(0, order=order)
        check_normalization(normalization)
        check_flow(flow)
        check_choice(('alpha', 'f'), parameterization=parameterization)
        self.order = order if parameterization == 'alpha' else order // 2 * 2
        self.parameterization = parameterization
        self.normalization = normalization
        self.flow = flow
        squared = parameterization == 'f'
        size, limit = (order // 2, 'order // 2') if squared else (order, 'order')
        initial, dtype = initial_series('coefficients', coefficients, heads, 1 + size, limit, factors=1 + squared)
        if squared and not isinstance(coefficients, str):  # words name f, and numbers give alpha
            try:
                initial = deconvolve(initial)
            except ArgumentError as error:
                raise error.renamed('coefficients') from None
        self._begin(initial, resolve_positive('coefficients', initial.to(dtype), positive))
        self.coefficients = torch.nn.Parameter(torch.empty_like(initial, dtype=dtype), requires_grad=learnable)
        self.reset_parameters()

    @property
    def alpha(self) -> Tensor:
        r"""The coefficients :math:`\alpha` of the powers, :obj:`[heads, K + 1]`."""
        coefficients = self._numbers(self.coefficients)
        return coefficients if self.parameterization == 'alpha' else convolve(coefficients, coefficients)

    def settings(self) -> Hashable:
        return type(self), self.normalization, self.flow

    def prepare(self, graph: Graph, generator: torch.Generator | None = None) -> AdjacencyState:
        return graph.state(AdjacencyMask(1, None, self.normalization, self.flow), generator)

    def bind(self, graph: Graph, state: AdjacencyState) -> MaskOperator:
        alpha = self.alpha
        weight = state.weight.to(torch.promote_types(graph.weight_dtype, alpha.dtype))
        if self.normalization is None:
            warn_of_growth(self, graph, state, alpha)
        cost = (alpha.size(1) - 1) * (state.pattern.nnz + graph.num_nodes) + graph.num_nodes
        context: dict[str, Any] = {'segments': graph.segments, 'heads': self.heads, 'cost': cost}
        product = Polynomial(alpha, weight.unsqueeze(0), state.pattern, 'powers', **context)
        entries = power_entries(graph, self.settings(), state.pattern, state.weight, alpha)
        return Alternatives(product, entries, self._blocks(graph, state, alpha, product), **context)

    def _blocks(self, graph: Graph, state: AdjacencyState, alpha: Tensor, product: MaskOperator) -> PreparedBlocks:
        def powers(segments: Segments, dtype: torch.dtype) -> Tensor:
            each = torch.eye(alpha.size(1), dtype=dtype, device=alpha.device)
            return polynomial_blocks(state.weight.to(dtype), state.pattern, each, 'powers', segments)

        # Terms of one sign do not cancel.
        positive = self.positive and graph.cached(('positive', self.settings()), partial(known_positive, state.weight))
        magnitude = None if positive else product.magnitude
        learned, key = state.weight.requires_grad, ('blocks', self.settings(), alpha.size(1))
        cache: dict[Hashable, Any] | None = None if learned else graph.cached(key, dict)
        return PreparedBlocks(alpha, powers, cache, (alpha.size(1) - 1) * state.pattern.nnz, magnitude=magnitude)


@torch.no_grad()
def warn_of_growth(mask: Mask, graph: Graph, state: AdjacencyState, series: Tensor) -> None:
    r"""Warns when a mask is first bound to a graph, if the terms of its power series, with the coefficients :obj:`[H, K + 1]`,
    still grow at the largest power. :math:`\mathbf{W}` is not normalized and has no added self-loops.
    """
    if is_exporting():
        return
    if state.weight.requires_grad:
        _check_growth(spectral_radius(state.pattern, state.weight), series)
        return
    radius = graph.cached('spectral radius', partial(spectral_radius, state.pattern, state.weight))
    graph.cached(('growth', mask), partial(_check_growth, radius, series))


def _check_growth(radius: float, series: Tensor) -> None:
    if radius <= 1 or series.size(1) == 1:
        return
    terms = series.double().abs() * radius ** torch.arange(series.size(1), device=series.device)
    if bool((terms[:, -1] > terms[:, :-1].amax(1)).any()):
        warn(
            f'The spectral radius of |W| is {radius:.4g}, and the power series still grows at its last term: it does not '
            f'approach its limit there, and the largest power outweighs the others. Normalize W (normalization="sym") or '
            f'scale the edge weights.'
        )


@torch.no_grad()
def spectral_radius(pattern: SparsePattern, weight: Tensor, iterations: int = 50) -> float:
    r"""Returns the spectral radius of :math:`|\mathbf{W}|`, which bounds that of :math:`\mathbf{W}`, by power iteration."""
    vector, radius = torch.ones(pattern.num_rows, 1, dtype=torch.float64, device=weight.device), 0.0
    value = weight.abs().double()
    for _ in range(iterations):
        # Of W + I, whose dominant eigenvalue is unique even on bipartite graphs.
        product = multiply(pattern.rowptr, pattern.col, value, vector) + vector
        radius = float(product.norm() / vector.norm()) - 1.0 if vector.numel() > 0 else 0.0
        vector = product / product.norm().clamp(min=1e-300)
    return radius
