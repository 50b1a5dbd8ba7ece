r"""Masks of the distance in trees."""

from __future__ import annotations

import inspect
from collections.abc import Hashable, Mapping
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad, softplus

from pyg_topomask.errors import ArgumentError
from pyg_topomask.graphs.graph import Graph
from pyg_topomask.graphs.segments import Segments
from pyg_topomask.graphs.tree_state import TreeState
from pyg_topomask.masks.base.kinds import LogarithmicMask, warn_of_lost_gradient
from pyg_topomask.masks.base.mask import Mask
from pyg_topomask.masks.base.series import resolve_positive, series_parameter
from pyg_topomask.operators.base import MaskOperator
from pyg_topomask.operators.composed import Alternatives, TreeMean
from pyg_topomask.operators.forms import PreparedBlocks
from pyg_topomask.operators.tree_distance import METHODS, TreeDistance, choose_method, plan_distance, plan_units
from pyg_topomask.operators.tree_exp import TreeExp, plan_exp
from pyg_topomask.utils.checks import assert_on_device, check_above_zero, check_choice, check_whole, is_number, per_head
from pyg_topomask.utils.functorch import outside_transforms, unwrapped
from pyg_topomask.utils.precision import wide_dtype

# The cost in multiplications of a node at each distance, without and with machine code, of a node of a histogram, of a node in
# both passes over a tree, and of a pair of nodes.
_RING, _RING_COMPILED, _MEMBER, _PASSES, _PAIRS = 10, 3, 80, 30, 8
# The largest diameter of trees whose nodes may all be compared with each other.
_DEEPEST = 2**13
# The largest relative error to which a > 0 may amplify rounding.
_ACCURACY = 1e-3
# The largest |b|. Attention divides by exp(b) again, and needs part of the range of float32.
_LARGEST = 40.0


class TreeMask(LogarithmicMask):
    r"""A learnable function of the distance between two nodes of a tree, from `"From block-Toeplitz matrices to differential
    equations on graphs" <https://arxiv.org/abs/2107.07999>`_ (Sec. 3.3 and 6, App. A.8 and A.11). Nodes of different trees do
    not attend to each other. With :obj:`kind="exp"` (Lemma 3.5),

    .. math::
        M_{ij} = \exp(a \, \mathrm{dist}(i, j) + b)

    where the edge weights are lengths of at least 0, and a distance is the sum of the lengths along the path. A product takes
    :math:`O(N)`, with one pass from the leaves to the roots and one pass back (Eq. 11 and 16 with :math:`e^{aW}` in place of
    :math:`e^{W}`, and with :math:`e^b` in :math:`s_i`). Contracting the trees takes :math:`O(\log N)` rounds, so
    long paths take no longer than stars. Gradients flow to edge weights that require them.

    With :obj:`kind="distance"` (Lemmas 6.1 and 6.2),

    .. math::
        M_{ij} = f(\min(\mathrm{dist}(i, j), L))

    for any :math:`f`. Distances are hops, and edge weights are ignored. A product takes :math:`O(N \min(\mathrm{diam}, L))`
    with sums over the nodes at every distance (Eq. 29 with the histogram of the parent's whole tree), or :math:`O(N \log^2 N)`
    with separators and fast Fourier transforms, whichever is less. With a :obj:`unit`, edge weights are lengths, rounded to
    whole numbers of units. A product then takes :math:`O(N \ell \log^2 N)` with Fourier transforms, where :math:`\ell` is the
    length of an edge in units. Gradients do not flow to the edge weights.

    Edges are undirected, even if only one direction is given. Of parallel edges, the shortest counts, and self-loops are
    ignored. The mask uses the forest that :class:`~pyg_topomask.transforms.AddForest` has stored on the data, or computes
    it. A graph with cycles needs spanning forests, which :class:`~pyg_topomask.transforms.AddSpanningForest` stores. Its
    mask is the mean of the masks of these forests.

    Args:
        heads (int): The number of heads, each with its own function. (default: that of the layer, or :obj:`1`)
        kind (str): :obj:`"exp"` or :obj:`"distance"`. (default: :obj:`"exp"`)
        a (float or torch.Tensor): The initial :math:`a`, one number or :obj:`[heads]`. If all are below 0, the mask learns
            :math:`\alpha` of :math:`a = -\mathrm{softplus}(\alpha)`, which stays below 0. Otherwise, it learns :math:`a`
            itself, of either sign. With :math:`a > 0`, rounding errors grow by :math:`\exp(2 a \, \mathrm{diam})`. Products
            are then in float64, and :math:`a` is at most :math:`14.5 / \mathrm{diam}`, which keeps errors below
            :math:`10^{-3}`. (default: :obj:`-1.0`)
        b (float or torch.Tensor): The initial :math:`b`, one number or :obj:`[heads]`, from -40 to 40. (default: :obj:`0.0`)
        max_distance (int): The largest distance :math:`L`. Beyond it, :math:`f` is constant. (default: :obj:`16`)
        f (torch.Tensor, optional): The initial :math:`f`, :obj:`[L + 1]` or :obj:`[heads, L + 1]`; :obj:`None` is
            :math:`f(d) = 2^{-d}`. (default: :obj:`None`)
        learnable (bool): Learn the function. (default: :obj:`True`)
        positive (bool, optional): Learn the logarithm of :math:`f`, see :class:`~pyg_topomask.masks.PowerSeriesMask`.
            (default: :obj:`None`)
        method (str): How to multiply with :obj:`kind="distance"`: :obj:`"rings"` (distance by distance), :obj:`"fft"`, or
            :obj:`"auto"`, which chooses by the diameter. With a unit, it is :obj:`"fft"`. (default: :obj:`"auto"`)
        unit (float, optional): The unit of distances with :obj:`kind="distance"`. (default: :obj:`None`, hops)

    Raises:
        ValueError: If an argument is outside its range, the graph has a cycle and no stored spanning forest, an edge weight is
            negative where lengths count, or :math:`a > 0` is too large or :obj:`unit` too small for the graph.

    Shapes:
        - **input:** graphs with :math:`|\mathcal{V}|` nodes and weighted edges
        - **output:** a mask operator :math:`(H, |\mathcal{V}|, |\mathcal{V}|)`
        - **parameters:** :obj:`raw_a` and :obj:`b` :math:`(H)`, or :obj:`raw_f` :math:`(H, L + 1)` with
          :obj:`kind="distance"`

    Example:
        >>> from torch_geometric.data import Data
        >>> mask = TreeMask(kind='distance', max_distance=2, f=torch.tensor([4.0, 2.0, 1.0]))
        >>> mask(Data(edge_index=torch.tensor([[0, 1], [1, 2]]), num_nodes=3)).to_dense().detach()
        tensor([[[4., 2., 1.],
                 [2., 4., 2.],
                 [1., 2., 4.]]])
    """

    form = 'product'
    direction = 'undirected'
    weights_by_head = True

    fixed: Tensor

    def __init__(
        self,
        heads: int = 1,
        kind: str = 'exp',
        a: Tensor | float = -1.0,
        b: Tensor | float = 0.0,
        max_distance: int = 16,
        f: Tensor | None = None,
        learnable: bool = True,
        positive: bool | None = None,
        method: str = 'auto',
        unit: float | None = None,
    ) -> None:
        super().__init__(heads)
        check_choice(('exp', 'distance'), kind=kind)
        check_choice(METHODS, method=method)
        check_whole(0, max_distance=max_distance)
        if unit is not None:
            check_above_zero(unit=unit)
        of_distance = {'max_distance': max_distance, 'f': f, 'positive': positive, 'method': method, 'unit': unit}
        _refuse_unused(kind, {'a': a, 'b': b}, of_distance)
        if unit is not None and method == 'rings':
            raise ArgumentError('method', f'{method!r} with a unit', ['auto', 'fft'])
        self.kind = kind
        self.max_distance = max_distance
        self.learnable = learnable
        self.method = method
        self.unit = unit
        if kind == 'exp':
            initial = torch.stack([per_head(heads, a=a), per_head(heads, b=b)])
            if not bool((initial[1].abs() <= _LARGEST).all()):
                raise ArgumentError('b', initial[1].tolist(), f'numbers from {-_LARGEST} to {_LARGEST}')
            positive = not learnable or bool((initial[0] < 0).all())
        else:
            f = 0.5 ** torch.arange(max_distance + 1) if f is None else f
            initial = series_parameter('f', f, heads, max_distance + 1, each='distance')
            positive = resolve_positive('f', initial, positive)
        self._begin(initial, positive)
        if kind == 'distance':
            self.raw_f = torch.nn.Parameter(torch.empty_like(initial), requires_grad=learnable)
        elif learnable:
            self.raw_a = torch.nn.Parameter(torch.empty(heads))
            self.b = torch.nn.Parameter(torch.empty(heads))
        else:
            self.register_buffer('fixed', torch.empty(2, heads))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        if self.kind == 'distance':
            super().reset_parameters()
            return
        self.positive = self._begins_positive
        with torch.no_grad():
            if self.learnable:
                a, b = self.initial
                inverse = a.neg().expm1().log().where(a > -20, -a)  # of softplus
                self.raw_a.copy_(inverse if self.positive else a)
                self.b.copy_(b)
            else:
                self.fixed.copy_(self.initial)

    @property
    def a(self) -> Tensor:
        r"""The factor :math:`a` of the distance, :obj:`[heads]`."""
        if not self.learnable:
            return self.fixed[0]
        return -softplus(self.raw_a) if self.positive else self.raw_a

    @property
    def f(self) -> Tensor:
        r"""The function :math:`f`, :obj:`[heads, L + 1]`."""
        return self._numbers(self.raw_f)

    def negative(self) -> str | None:
        return super().negative() if self.kind == 'distance' else None

    @property
    def weighted(self) -> bool:  # type: ignore[override]
        return self.kind == 'exp' or self.unit is not None

    @property
    def learns_weights(self) -> bool:
        return self.kind == 'exp'

    def of_head(self, head: int) -> Mask:
        mask = super().of_head(head)
        if self.kind == 'exp' and not self.learnable:
            vars(mask)['_buffers'] = {**self._buffers, 'fixed': self.fixed[:, head : head + 1]}
        return mask

    def settings(self) -> Hashable:
        return type(self)

    @torch.compiler.disable  # torch.compile would read SciPy as Python
    def prepare(self, graph: Graph, generator: torch.Generator | None = None) -> TreeState:
        return TreeState.load(graph) or TreeState.of(graph)

    def bind(self, graph: Graph, state: TreeState) -> MaskOperator:
        if state.shortest < 0 and (self.kind == 'exp' or self.unit is not None):
            setting = 'kind="exp"' if self.kind == 'exp' else f'unit={self.unit}'
            raise ArgumentError('edge_weight', f'{state.shortest:.6g} for {setting}', 'lengths from 0')
        context: dict[str, Any] = {'segments': graph.segments, 'heads': self.heads}
        if self.kind == 'distance':
            f = self.f
            if self.unit is not None:
                warn_of_lost_gradient(self, graph)
                method = 'fft'
                plan = state.plan(f'{self.unit}', partial(plan_units, length=state.length, unit=self.unit))
            else:
                method = outside_transforms(choose_method)(state.forest, self.max_distance, state.length.device, self.method)
                plan = state.plan(method, partial(plan_distance, method=method))
            product: MaskOperator = TreeDistance(f, method, plan, **context)
            rings = 1 + min(state.diameter, self.max_distance)
            if method == 'fft':
                cost = _MEMBER * plan[1].numel()
            else:
                each = _PASSES + _RING_COMPILED * rings if product.has_machine_code() else _RING * rings
                cost = each * state.forest.num_nodes
            blocks = None
            if self.unit is None and state.diameter <= _DEEPEST:
                blocks = self._blocks(state, f.index_select(1, state.distances.clamp_(max=self.max_distance)))
            return self._operator(state, product, cost, blocks)
        a, b = (self.a, self.b) if self.learnable else self.fixed
        contraction, walk = state.plan('exp', plan_exp)
        product = TreeExp(a, b, state.length, contraction, walk, self._grows(state, a), **context)
        blocks = None
        if graph.edge_weight is None and graph.segments.several and state.diameter <= _DEEPEST:
            numbers = wide_dtype(a)  # exp(b) overflows in half precision
            exponent = a.to(numbers).unsqueeze(1) * state.distances + b.to(numbers).unsqueeze(1)
            blocks = self._blocks(state, exponent.exp())
        return self._operator(state, product, _PASSES * state.forest.num_nodes, blocks)

    def _blocks(self, state: TreeState, f: Tensor) -> PreparedBlocks:
        r"""Returns the blocks of the graphs, given the function of the distance in hops, :obj:`[heads, diameter + 1]`."""
        trees = state.num_trees

        def labels(segments: Segments, dtype: torch.dtype) -> Tensor:
            # Label 0 is that of nodes in different trees.
            return 1 + state.forest.hops(segments.repeated(trees)).to(f.device).view(trees, -1)

        return PreparedBlocks(pad(f / trees, (1, 0)), labels, state.cache, _PAIRS * state.forest.num_nodes, labels=trees)

    def _operator(
        self, state: TreeState, product: MaskOperator, cost: int, blocks: PreparedBlocks | None = None
    ) -> MaskOperator:
        context: dict[str, Any] = {'segments': product.segments, 'heads': self.heads, 'cost': cost}
        if state.num_trees > 1:
            product = TreeMean(product, state.num_trees, **context)
        return Alternatives(product, None, blocks, **context)

    def _grows(self, state: TreeState, a: Tensor) -> bool:
        r"""Returns whether entries may grow with the distance. Raises an error if rounding errors would hide the result."""
        if self.learnable and self.positive:
            return False
        largest = unwrapped(a).max()
        if largest.device.type == 'cpu' and largest <= 0:
            return False
        path = state.longest_path
        limit = float(np.log(_ACCURACY / torch.finfo(torch.float64).eps)) / 2
        if not assert_on_device(largest * path <= limit, f'a: got numbers above {limit / max(path, 1e-30):.6g}'):
            given = f'{float(largest):.6g} for trees with paths of length {path:.6g}'
            remedy = 'rounding errors of float64 would grow by exp(2 * a * length) and hide the result beyond that'
            raise ArgumentError('a', given, f'numbers up to {limit / path:.6g}, or below 0', remedy)
        return True


def _refuse_unused(kind: str, exp: Mapping[str, Tensor | float], distance: Mapping[str, Any]) -> None:
    r"""Raises an error if an argument of the other kind differs from its default."""
    other = 'distance' if kind == 'exp' else 'exp'
    for name, given in (distance if kind == 'exp' else exp).items():
        default = inspect.signature(TreeMask).parameters[name].default
        plain = isinstance(given, str) or is_number(given)
        if given is not default and not (plain and given == default):
            got = 'a tensor' if isinstance(given, Tensor) else repr(given)
            raise ArgumentError(name, f'{got} for kind="{kind}"', f'{default!r}, or kind="{other}"')
