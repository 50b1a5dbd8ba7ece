r"""Heat kernels of graphs as masks."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch import Tensor

from pyg_topomask.errors import ArgumentError
from pyg_topomask.graphs.edges import check_flow
from pyg_topomask.graphs.graph import Graph
from pyg_topomask.graphs.segments import Segments
from pyg_topomask.graphs.sparse_pattern import SparsePattern
from pyg_topomask.masks.adjacency import AdjacencyMask, AdjacencyState
from pyg_topomask.masks.base.kinds import DiffusionMask
from pyg_topomask.operators.base import MaskOperator
from pyg_topomask.operators.composed import Alternatives
from pyg_topomask.operators.exponential import (
    ExpAction,
    GlobalReductions,
    chebyshev_coefficients,
    chebyshev_error,
    spectral_bound,
    taylor_coefficients,
)
from pyg_topomask.operators.forms import PreparedBlocks
from pyg_topomask.operators.polynomial import polynomial_blocks
from pyg_topomask.utils.checks import check_choice, is_number
from pyg_topomask.utils.functorch import outside_transforms, unwrapped

KINDS = ('laplacian', 'random_walk_laplacian', 'normalized_laplacian', 'adjacency')
# The largest lam times radius for each method. The Taylor series has about as many terms, the Chebyshev series about a million.
_LARGEST = {'chebyshev': 1e10, 'powers': 1e6}
_COEFFICIENTS = {'chebyshev': chebyshev_coefficients, 'powers': taylor_coefficients}
# Up to this value, adjacencies have a Taylor series. If all weights are positive, its digits do not cancel. The series does not
# depend on their signs, which may differ between the graphs of a batch.
_TAYLOR = 1e3
# Beyond it, entries of adjacencies shrink by up to exp(-lam * excess). The largest relative error that this may give.
_SHRUNK = 1e-2
# Blocks serve as long as times change by less than this factor.
_CHANGE = 1.25
# The number of sampled times between which blocks serve, the largest number of terms, and the share of the tolerance for this.
_TIMES, _TERMS, _EXCESS = 64, 512, 0.1


@dataclass(frozen=True)
class HeatState:
    r"""The generator of the kernel, :math:`r (\mathbf{B} - \mathbf{I})`, with a sparse :math:`\mathbf{B}` whose spectrum is in
    the unit interval or disc, a bound on the entries of its powers, whether all entries are nonnegative, and how far the
    bound on the spectral radius of an adjacency may be above it.
    """

    pattern: SparsePattern
    value: Tensor
    radius: float
    method: str
    growth: float
    positive: bool
    excess: float


@dataclass(frozen=True)
class _Span:
    r"""An orthonormal basis of the coefficients of the polynomials for all times between two, :obj:`[K + 1, J]`, and the blocks
    of its polynomials.
    """

    low: float
    high: float
    basis: Tensor
    cache: dict[Hashable, Any] = field(default_factory=dict)


@dataclass
class _LastSpan:
    r"""The last span of all layers. Operators that are bound already keep the blocks of an earlier one."""

    span: _Span | None = None

    def covering(self, least: float, most: float, make: Callable[[float, float], _Span]) -> _Span:
        r"""Returns a span of times that contains those from :obj:`least` to :obj:`most`, a new one if the last is too small."""
        if self.span is None:
            self.span = make(least / _CHANGE, most * _CHANGE)
        elif not self.span.low <= least <= most <= self.span.high:
            self.span = make(min(self.span.low, least / _CHANGE), max(self.span.high, most * _CHANGE))
        return self.span


class HeatKernelMask(DiffusionMask):
    r"""The kernel of heat diffusion on the graph, from `"From block-Toeplitz matrices to differential equations on graphs"
    <https://arxiv.org/abs/2107.07999>`_ (Sec. 4, Eq. 4), with a learnable time :math:`\lambda > 0` per head:

    =========================== ======================================================================================
    kind                        :math:`\mathbf{M}`
    =========================== ======================================================================================
    ``laplacian``               :math:`\exp(-\lambda \mathbf{L})` with :math:`\mathbf{L} = \mathbf{D} - \mathbf{A}`
    ``random_walk_laplacian``   :math:`\exp(-\lambda \mathbf{L} \mathbf{D}^{-1})`
    ``normalized_laplacian``    :math:`\exp(-\lambda \mathbf{D}^{-1/2} \mathbf{L} \mathbf{D}^{-1/2})`
    ``adjacency``               :math:`\exp(\lambda (\mathbf{A} - \rho \mathbf{I}))`
    =========================== ======================================================================================

    Parallel edges add up in :math:`\mathbf{A}`. :math:`\mathbf{D}` contains the column sums of :math:`|\mathbf{A}|`. Nodes of
    degree 0 keep their heat: :math:`M_{ii} = 1`. :math:`\rho` is an upper bound on the spectral radius of :math:`|\mathbf{A}|`,
    one per connected component. The factor :math:`e^{-\lambda \rho}` avoids overflow, and cancels in normalized attention.

    The matrix is not formed. :math:`\exp(\cdot) \mathbf{x}` is a polynomial in the sparse matrix and takes :math:`O(K E)`,
    where :math:`\lambda` and the tolerance determine the degree :math:`K`. Small graphs on a CPU store a few dense blocks,
    whose linear combinations are the masks of all heads, until a :math:`\lambda` has changed by a quarter. The polynomial is

    - a Taylor series for :obj:`"adjacency"`, up to :math:`\lambda \rho = 1000` in all heads and graphs of a batch. Without
      negative weights, all of its terms are positive, so small rows stay accurate next to large ones.
    - a Chebyshev series for other symmetric matrices: both symmetric Laplacians, and :obj:`"adjacency"` beyond this bound.
      Its error is relative to the largest entry of :math:`\mathbf{x}` in the graph. Attention rows with a total weight below
      this error count as zero rows. A row whose weight is :math:`w` times the largest entry has a relative error of at most
      about :obj:`tolerance` :math:`/ w`, which is 0.5 % for the smallest rows that count in float32,
      :math:`w = 2 \cdot 10^{-6}`. For :obj:`"adjacency"` without negative weights, the mask raises an error if :math:`\lambda`
      is so large that even the largest rows could be below the error, because :math:`\rho` may exceed the spectral radius.
    - a Taylor series for asymmetric matrices. :obj:`"adjacency"` on directed graphs has more terms, because powers of
      :math:`\mathbf{A}` may grow before they decay.

    Rows too small for the data type also count as zero rows. In float32, the relative error also grows with
    :math:`\lambda` times the largest degree. Gradients flow to :math:`\lambda` and to edge weights that require them.

    With the kinds :obj:`"random_walk_laplacian"` and :obj:`"adjacency"`, edges are followed: a node attends to nodes from which
    edges lead to it, and :obj:`flow` reverses this. The other kinds need symmetric edges.

    Args:
        heads (int): The number of heads. (default: that of the layer, or :obj:`1`)
        kind (str): One of the kinds above. :obj:`"laplacian"` and :obj:`"normalized_laplacian"` need symmetric edges and
            weights. (default: :obj:`"laplacian"`)
        lam (float, sequence of float or torch.Tensor): The initial :math:`\lambda`, one number or :obj:`[heads]`, above 0,
            learned as the softplus of the parameter. (default: :obj:`1.0`)
        tolerance (float): The largest error of the polynomial. Results in a batch and alone agree up to this error, and so do
            results with and without blocks. (default: :obj:`1e-8`)
        learnable (bool): Learn :math:`\lambda`. (default: :obj:`True`)
        flow (str): The direction of attention along edges, see :class:`~pyg_topomask.masks.AdjacencyMask`.
            (default: :obj:`"source_to_target"`)

    Raises:
        ValueError: If an argument is outside its range, :obj:`kind` requires symmetric edges and they are not, a
            :math:`\lambda` is too large for the graph, or a state dictionary is that of another :obj:`kind`.

    Shapes:
        - **input:** graphs with :math:`|\mathcal{V}|` nodes and weighted edges
        - **output:** a mask operator :math:`(H, |\mathcal{V}|, |\mathcal{V}|)`
        - **parameters:** :obj:`raw_lam` :math:`(H)`

    Example:
        >>> from torch_geometric.data import Data
        >>> mask = HeatKernelMask(lam=0.5)
        >>> mask(Data(edge_index=torch.tensor([[0, 1], [1, 0]]), num_nodes=2)).to_dense().detach()
        tensor([[[0.6839, 0.3161],
                 [0.3161, 0.6839]]])
    """

    form = 'product'
    renumbers = 'graph'
    weights_by_head = True
    shown = ('kind',)

    def __init__(
        self,
        heads: int = 1,
        kind: str = 'laplacian',
        lam: float | Sequence[float] | Tensor = 1.0,
        tolerance: float = 1e-8,
        learnable: bool = True,
        flow: str = 'source_to_target',
    ) -> None:
        super().__init__(heads, lam, learnable)
        check_choice(KINDS, kind=kind)
        if not (is_number(tolerance) and 1e-15 <= tolerance < 1):
            raise ArgumentError('tolerance', repr(tolerance), 'numbers from 1e-15 to below 1')
        check_flow(flow)
        self.kind = kind
        self.flow = flow
        self.tolerance = tolerance

    @property
    def direction(self) -> str:  # type: ignore[override]
        return 'symmetric' if self.kind in ('laplacian', 'normalized_laplacian') else 'followed'

    def settings(self) -> Hashable:
        return type(self), self.kind, self.flow

    @torch.compiler.disable  # torch.compile would reuse the radius of an earlier graph
    def prepare(self, graph: Graph, generator: torch.Generator | None = None) -> HeatState:
        # The pattern contains every diagonal entry.
        state = AdjacencyMask(1, 1.0, None, self.flow).prepare(graph)
        return self.prepare_on(state, GlobalReductions(state.pattern, graph.order))

    def prepare_on(self, state: AdjacencyState, nodes: GlobalReductions) -> HeatState:
        r"""Prepares the mask on an adjacency matrix whose pattern contains the diagonal, with reductions over all nodes."""
        pattern, weight, loop = state.pattern, state.weight.double(), state.loop.double()
        row, col = nodes.row, nodes.col
        pair = nodes.asymmetric(weight.detach())
        if pair is not None and self.kind in ('laplacian', 'normalized_laplacian'):
            given = f'edges whose weights differ between {pair} and {pair[::-1]} for kind={self.kind!r}'
            accepted = 'symmetric graphs (transforms.ToUndirected makes them), or "random_walk_laplacian" and "adjacency"'
            remedy = 'EdgeWeights(symmetric=True) learns such weights' if weight.requires_grad else ''
            raise ArgumentError('edge_index', given, accepted, remedy)
        degree = nodes.degree(weight)
        chebyshev = pair is None and self.kind != 'random_walk_laplacian'
        radius, growth, excess = 1.0, 1.0, 0.0
        if self.kind == 'adjacency':
            component, count = nodes.components()
            bound, condition, above = spectral_bound(nodes, weight.detach().abs(), component, count)
            radius, excess = (float(bound.max()), float(above.max())) if count > 0 else (0.0, 0.0)
            # Powers of symmetric matrices do not grow.
            growth = 1.0 if chebyshev else float(condition.max())
            weight = weight - loop * bound[component][row]
        elif self.kind == 'laplacian':
            everything = row.new_zeros(pattern.num_rows)
            # The largest eigenvalue of D - A is at most that of D + |A|.
            unsigned = (weight.abs() + loop * degree[row]).detach()
            # 16 iterations come within a few percent of 32, and raise the degree by no more than that.
            radius = float(spectral_bound(nodes, unsigned, everything, 1, iterations=16)[0]) / 2
            weight = weight - loop * degree[row]
        else:
            used = degree > 0
            inverse = degree.masked_fill(~used, 1.0)
            if self.kind == 'random_walk_laplacian':
                weight = weight / inverse[col]
            else:
                weight = weight / inverse[row].sqrt() / inverse[col].sqrt()
            weight = weight - loop * used[col]
        radius = radius or 1.0
        value = weight / radius + loop
        # Only the adjacency can have rows of very different sizes, as in graphs with sparse and dense regions.
        least = torch.nn.functional.pad(value.detach(), (0, 1)).amin()
        positive = self.kind == 'adjacency' and float(nodes.smallest(least)) >= 0
        return HeatState(pattern, value, radius, 'chebyshev' if chebyshev else 'powers', growth, positive, excess)

    def coefficients(self, state: HeatState) -> tuple[Tensor, str]:
        r"""Returns the coefficients, :obj:`[heads, K + 1]` in float64, and the kind of polynomial."""
        lam = self.lam
        limit = _LARGEST[state.method] / state.radius
        if state.method == 'chebyshev' and state.excess > 0:
            error = max(self.tolerance, 10 * torch.finfo(lam.dtype).eps)
            limit = min(limit, max(_TAYLOR / state.radius, math.log(_SHRUNK / error) / state.excess))
        times = unwrapped(lam)
        if not bool((times <= limit).all()):
            raise ArgumentError('lam', f'{times.tolist()} on this graph', f'numbers up to {limit:.6g}')
        taylor = self.kind == 'adjacency' and bool((times * state.radius <= _TAYLOR).all())
        method = 'powers' if taylor else state.method
        return _COEFFICIENTS[method](lam.double() * state.radius, self.tolerance / state.growth), method

    def bind(self, graph: Graph, state: HeatState) -> MaskOperator:
        lam = self.lam
        coefficients, method = self.coefficients(state)
        value = state.value.to(lam.dtype).unsqueeze(0)
        cost = coefficients.size(1) * (state.pattern.nnz + graph.num_nodes)
        product = ExpAction(
            coefficients.to(lam.dtype),
            value,
            state.pattern,
            method,
            index=graph.segments.index,
            ptr=graph.segments.ptr,
            tolerance=self.tolerance,
            segments=graph.segments,
            heads=self.heads,
            cost=cost,
        )
        blocks = self._blocks(graph, state, coefficients, method, product)
        return Alternatives(product, None, blocks, segments=graph.segments, heads=self.heads, cost=cost)

    def _blocks(
        self, graph: Graph, state: HeatState, coefficients: Tensor, method: str, product: MaskOperator
    ) -> PreparedBlocks | None:
        if state.value.device.type != 'cpu' or torch.compiler.is_compiling() or coefficients.size(1) > _TERMS:
            return None
        cache: dict[Hashable, Any] | None = None
        if state.value.requires_grad:  # the blocks of this call alone, one for each head
            basis, combined = coefficients.t(), torch.eye(self.heads, dtype=coefficients.dtype)
        else:
            last: _LastSpan = graph.cached(('blocks', self.settings(), self.tolerance, method), _LastSpan)
            least, most = map(float, unwrapped(self.lam).double().aminmax())
            span = last.covering(least, most, partial(self._span, state, method))
            basis, cache = span.basis, span.cache
            combined = coefficients @ basis[: coefficients.size(1)]

        def terms(segments: Segments, dtype: torch.dtype) -> Tensor:
            return polynomial_blocks(state.value.to(dtype), state.pattern, basis.t().to(dtype), method, segments)

        def magnitude(x: Tensor) -> Tensor:
            if method == 'powers':
                return product.magnitude(x)
            return chebyshev_error(self.tolerance, x, graph.segments.index, graph.num_graphs)

        cost = (basis.size(0) - 1) * state.pattern.nnz
        cancels = method == 'chebyshev' or (self.kind == 'adjacency' and not state.positive)
        error = self.tolerance if method == 'chebyshev' else 0.0
        return PreparedBlocks(combined, terms, cache, cost, magnitude=magnitude if cancels else None, error=error)

    @outside_transforms
    @torch.inference_mode(False)  # kept, and possibly used in training later
    @torch.no_grad()
    def _span(self, state: HeatState, method: str, low: float, high: float) -> _Span:
        r"""Returns a small basis of the coefficients for all times from :obj:`low` to :obj:`high`: the first singular vectors
        of the coefficients for a sample of times. Its error is absolute. A Taylor series keeps all coefficients, because a row
        may be as small as one of its terms.
        """
        make, tolerance = _COEFFICIENTS[method], self.tolerance / state.growth
        if method == 'powers':
            longest = make(torch.tensor([high * state.radius]), tolerance)
            return _Span(low, high, torch.eye(longest.size(1), dtype=longest.dtype))
        # Chebyshev points of log(1 + z): coefficients change with z where it is small, and with log(z) where it is large.
        first, last = math.log1p(low * state.radius), math.log1p(high * state.radius)
        points = torch.linspace(0, math.pi, 2 * _TIMES - 1, dtype=torch.float64).cos()
        series = make(((last + first) / 2 - (last - first) / 2 * points).expm1(), tolerance)
        # The points in between check that there are enough.
        basis = torch.linalg.svd(series[::2], full_matrices=False)[2].t()
        rest, number = series, 0
        while number < basis.size(1) and float(rest.abs().sum(1).max()) > _EXCESS * tolerance:
            number += 1
            rest = series - series @ basis[:, :number] @ basis[:, :number].t()
        # One more for the derivatives; and all where so many are needed that the times may be too few.
        basis = basis[:, : number + 1] if 2 * number < _TIMES else torch.eye(series.size(1), dtype=series.dtype)
        return _Span(low, high, basis)

    def get_extra_state(self) -> Tensor:
        return torch.tensor(KINDS.index(self.kind))

    def set_extra_state(self, state: Tensor) -> None:
        kind = KINDS[round(float(state))]  # averages of equal states may be rounded
        if kind != self.kind:
            raise ArgumentError('kind', f'a state dictionary of kind={kind!r} for kind={self.kind!r}', 'equal kinds')
