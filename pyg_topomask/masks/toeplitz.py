r"""Relative positions on grids as masks."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad

from pyg_topomask.errors import ArgumentError
from pyg_topomask.graphs.graph import Graph
from pyg_topomask.graphs.segments import Segments
from pyg_topomask.masks.base.kinds import LogarithmicMask
from pyg_topomask.operators.base import MaskOperator
from pyg_topomask.operators.composed import Alternatives
from pyg_topomask.operators.forms import PreparedBlocks
from pyg_topomask.operators.toeplitz import Toeplitz
from pyg_topomask.utils.checks import as_numbers, check_choice, check_whole, described, is_whole
from pyg_topomask.utils.precision import widened

# The largest number of entries in the table of a head.
_LARGEST = 2**28


class ToeplitzMask(LogarithmicMask):
    r"""A learnable function of the relative position of two nodes on a :math:`d`-dimensional grid, from `"From block-Toeplitz
    matrices to differential equations on graphs" <https://arxiv.org/abs/2107.07999>`_ (Sec. 3.2, Lemma 3.3):

    .. math::
        M_{ij} = \xi(\mathbf{p}_i - \mathbf{p}_j) \qquad \text{or} \qquad M_{ij} = f(\mathrm{dist}(i, j))

    for nodes at the positions :math:`\mathbf{p}` of a grid. The mask learns :math:`\xi`, a function of the offset, or
    :math:`f`, a function of the length of the shortest path. The matrix is :math:`d`-level block-Toeplitz. Fourier transforms
    compute products with it in :math:`O(N \log N)` time and :math:`O(N)` memory.

    The nodes of a graph are the points of its grid, in row-major order. :class:`~pyg_topomask.transforms.AddGridShape` and
    :class:`~pyg_topomask.transforms.ToGridGraph` store the shape of the grid as :obj:`data.grid_shape`. With
    :obj:`shape_dims=1`, the shape may be missing, and the nodes of each graph are then on a line. The graphs of a batch may
    have different shapes. The mask ignores edges.

    Entries have the rounding error of the transforms, relative to the whole grid. Rows with a total weight below this error
    count as zero rows. On a CPU in float32, up to 128 nonzero offsets (:obj:`beyond="zero"`) are summed without transforms,
    and attention on small grids looks up the entries of all pairs of points. Both are faster and have no such error.

    Args:
        heads (int): The number of heads, each with its own table. (default: that of the layer, or :obj:`1`)
        shape_dims (int): The number of dimensions :math:`d` of the grids. (default: :obj:`2`)
        kind (str): :obj:`"offset"` for a table of signed offsets, :obj:`[2 w_1 + 1, ..., 2 w_d + 1]`, or :obj:`"distance"` for
            a table of distances, :obj:`[w + 1]`. (default: :obj:`"offset"`)
        window (int or sequence of int): The largest offset :math:`w` in the table, one number or one per dimension. With
            :obj:`"distance"`, the largest distance. (default: :obj:`8`)
        beyond (str): The entry of pairs beyond the window: :obj:`"clip"` for the value at the end of the window, or
            :obj:`"zero"`. (default: :obj:`"clip"`)
        periodic (bool): Wrap around in every dimension. The matrix is then circulant. The offset of two positions is the
            shorter way around, and :math:`-n / 2` if both ways are equally long. (default: :obj:`False`)
        initial (torch.Tensor or str, optional): The initial table, of the shape above, with or without a leading
            dimension for heads. :obj:`None` is a table of ones. :obj:`"tanh"` (:math:`\lambda = 1`) or :obj:`"tanh:0.5"`
            is :math:`\tanh(\lambda)^{\mathrm{dist}}`, the heat kernel on hypercubes (see
            :class:`~pyg_topomask.masks.HypercubeMask`), and on no other grid. (default: :obj:`None`)
        positive (bool): Learn the logarithm of the table, which stays above 0. (default: :obj:`False`)
        causal (int, optional): The dimension that is time, such as :obj:`0` for sequences and for grids of frames. Nodes then
            do not attend to later ones: :math:`M_{ij} = 0` if :math:`\mathbf{p}_j` is later than :math:`\mathbf{p}_i` in this
            dimension. The table has no entries for these pairs, so no training step changes them, and the matrix is lower
            triangular for sequences. (default: :obj:`None`)

    Raises:
        ValueError: If an argument is outside its range, :obj:`causal` meets :obj:`periodic=True`, or the grid shape is missing
            or does not fit the nodes.

    Shapes:
        - **input:** graphs with :math:`|\mathcal{V}|` nodes, the attribute :obj:`grid_shape` :math:`(B, d)` of :math:`B` graphs
        - **output:** a mask operator :math:`(H, |\mathcal{V}|, |\mathcal{V}|)`
        - **parameters:** :obj:`table` :math:`(H, 2 w_1 + 1, \dots, 2 w_d + 1)`, of which the dimension :obj:`causal` has
          :math:`w + 1` entries, or :math:`(H, w + 1)` with :obj:`kind="distance"`

    Example:
        >>> from torch_geometric.data import Data
        >>> mask = ToeplitzMask(shape_dims=1, window=1, initial=torch.tensor([2.0, 0.0, 1.0]))
        >>> mask(Data(num_nodes=2, grid_shape=torch.tensor([[2]]))).to_dense().detach().round()
        tensor([[[0., 2.],
                 [1., 0.]]])
    """

    form = 'product'
    direction = 'unused'

    def __init__(
        self,
        heads: int = 1,
        shape_dims: int = 2,
        kind: str = 'offset',
        window: int | Sequence[int] = 8,
        beyond: str = 'clip',
        periodic: bool = False,
        initial: Tensor | str | None = None,
        positive: bool = False,
        causal: int | None = None,
    ) -> None:
        super().__init__(heads)
        check_whole(1, 60, shape_dims=shape_dims)  # of at most 64 in torch
        check_choice(('offset', 'distance'), kind=kind)
        check_choice(('clip', 'zero'), beyond=beyond)
        length = shape_dims if kind == 'offset' else 1
        windows = tuple(window) if isinstance(window, Sequence) else (window,) * length
        if len(windows) != length or not all(is_whole(size, 0) for size in windows):
            accepted = f'whole numbers from 0, one or {shape_dims}' if kind == 'offset' else 'a whole number from 0'
            raise ArgumentError('window', f'{window} for kind={kind!r}', accepted)
        if causal is not None:
            check_whole(0, shape_dims - 1, causal=causal)
            if periodic:
                raise ArgumentError('causal', f'{causal} for periodic=True, in which no position is later', 'None')
        self.shape_dims = shape_dims
        self.kind = kind
        self.window = windows
        self.causal = causal
        size = math.prod(self._table_shape())
        if size > _LARGEST:
            # With many dimensions, their number makes the table large, not the window.
            name, value = ('shape_dims', shape_dims) if shape_dims > 3 else ('window', window)
            given = (
                f'{value} for kind={kind!r}, shape_dims={shape_dims} and window={window}, a table of {size} numbers per head'
            )
            raise ArgumentError(name, given, f'tables of up to {_LARGEST} numbers')
        self.beyond = beyond
        self.periodic = periodic
        table = self._initial_table(initial)
        if not bool(table.isfinite().all()) or (positive and not bool((table > 0).all())):
            got = repr(initial) if isinstance(initial, str) else f'numbers from {float(table.min())} to {float(table.max())}'
            accepted = f'finite numbers{" above 0" if positive else ""}'
            raise ArgumentError('initial', f'{got} for positive={positive}', accepted)
        self._begin(table, positive)
        self.table = torch.nn.Parameter(torch.empty_like(table))
        self.reset_parameters()

    def _table_shape(self) -> tuple[int, ...]:
        return tuple(len(each) for each in self._offsets()) if self.kind == 'offset' else (self.window[0] + 1,)

    def _offsets(self) -> list[range]:
        r"""The offsets in the table along each dimension."""
        return [range(0 if axis == self.causal else -w, w + 1) for axis, w in enumerate(self.window)]

    def _initial_table(self, initial: Tensor | str | None) -> Tensor:
        shape = self._table_shape()
        if isinstance(initial, str):
            table = _tanh(initial) ** self._distance(shape)
        elif initial is None:
            table = torch.ones(shape)
        else:
            given = as_numbers(initial=initial).detach()
            table = widened(given)
        if table.shape not in (shape, (self.heads, *shape)):
            raise ArgumentError('initial', f'shape {tuple(table.shape)}', f'{shape} and {(self.heads, *shape)}')
        return table.expand(self.heads, *shape).clone()

    def _distance(self, shape: tuple[int, ...]) -> Tensor:
        r"""The distance of each entry of the table."""
        if self.kind == 'distance':
            return torch.arange(shape[0])
        offsets = torch.meshgrid(*(torch.tensor(each) for each in self._offsets()), indexing='ij')
        return torch.stack(offsets).abs().sum(0)

    def settings(self) -> Hashable:
        return type(self), self.shape_dims

    def prepare(self, graph: Graph, generator: torch.Generator | None = None) -> list[Tensor]:
        shapes = self._shapes(graph)
        # Not torch.unique, which is slow for rows on CPUs.
        distinct, inverse = np.unique(shapes.cpu().numpy(), axis=0, return_inverse=True)
        group = torch.from_numpy(inverse.reshape(-1)).to(graph.device)
        size = shapes.prod(1)
        first, grids = size.cumsum(0) - size, []
        for kind, shape in enumerate(distinct.tolist()):
            if math.prod(shape) > 0:
                within = torch.arange(math.prod(shape), device=graph.device)
                grids.append((first[group == kind].unsqueeze(1) + within).unflatten(1, shape))
        nodes = torch.cat([first.new_empty(0), *(grid.flatten() for grid in grids)])
        slot = torch.empty_like(nodes).index_copy(0, nodes, torch.arange(graph.num_nodes, device=graph.device))
        return [slot, *grids]

    def _shapes(self, graph: Graph) -> Tensor:
        r"""Returns the shape of the grid of each graph, :obj:`[num_graphs, d]`."""
        shapes: Tensor | None = graph.get('grid_shape')
        size = graph.segments.sizes
        if shapes is None and self.shape_dims == 1:
            return size.unsqueeze(1)
        accepted = f'integers [{graph.num_graphs}, {self.shape_dims}], as transforms.AddGridShape stores them'
        if shapes is None:
            remedy = (
                'transforms.AddGridShape or transforms.ToGridGraph stores it on data, which layers take as graph=data '
                '(in a YAML, topomask.transforms [{AddGridShape: {shape: [3, 4]}}])'
            )
            raise ArgumentError('grid_shape', 'a graph without it', accepted, remedy)
        if not isinstance(shapes, Tensor) or shapes.is_floating_point():
            raise ArgumentError('grid_shape', described(shapes), accepted)
        shapes = shapes.to(graph.device)
        if shapes.shape != (graph.num_graphs, self.shape_dims):
            given = f'{described(shapes)} for {graph.num_graphs} graphs and shape_dims={self.shape_dims}'
            raise ArgumentError('grid_shape', given, accepted)
        wrong = (shapes.prod(1) != size) | (shapes < 0).any(1)
        if bool(wrong.any()):
            first = int(wrong.nonzero()[0])
            given = f'{shapes[first].tolist()} for graph {first} of {int(size[first])} nodes'
            remedy = 'run transforms.AddGridShape after transforms that change the nodes'
            raise ArgumentError('grid_shape', given, 'shapes whose product is the number of nodes', remedy)
        return shapes

    def bind(self, graph: Graph, state: list[Tensor]) -> MaskOperator:
        table = self._numbers(self.table)
        slot, *grids = state
        context: dict[str, Any] = {'segments': graph.segments, 'heads': self.heads}
        product = Toeplitz(table, slot, tuple(grids), self.kind, self.beyond, self.periodic, self.causal, **context)
        for grid in grids:
            size = math.prod(product.transform_sizes(table, grid.shape[1:]))
            product.cost += grid.size(0) * size * max(1, math.ceil(math.log2(size)))
        return Alternatives(product, None, self._blocks(graph, grids, product, table), **context, cost=product.cost)

    def _blocks(self, graph: Graph, grids: list[Tensor], operator: Toeplitz, table: Tensor) -> PreparedBlocks | None:
        r"""Returns the blocks of the graphs as functions of the places in the table, if these are few."""
        entries = table[0].numel()
        if entries >= torch.iinfo(torch.int16).max:
            return None

        def labels(segments: Segments, dtype: torch.dtype) -> Tensor:
            # Label 0 is that of pairs beyond the window, where the mask is 0.
            numbers = torch.arange(1, entries + 1, dtype=torch.int16, device=table.device).view(1, *table.shape[1:])
            if len(grids) == 1:
                return operator.pairs(numbers, grids[0].shape[1:]).flatten().repeat(1, grids[0].size(0))
            label, start = numbers.new_empty(1, segments.num_pairs), segments.sizes.square().cumsum(0)
            for nodes in grids:
                pairs = operator.pairs(numbers, nodes.shape[1:]).flatten()
                first = start[segments.index[nodes.flatten(1)[:, 0]]] - pairs.numel()
                label[0, first.unsqueeze(1) + torch.arange(pairs.numel(), device=first.device)] = pairs
            return label

        key = 'labels', self.settings(), self.kind, self.window, self.beyond, self.periodic, self.causal
        cache: dict[Hashable, Any] = graph.cached(key, dict)
        return PreparedBlocks(pad(table.flatten(1), (1, 0)), labels, cache, graph.num_nodes, labels=1)


def _tanh(initial: str) -> float:
    r"""Returns :math:`\tanh(\lambda)` for :obj:`"tanh"` or :obj:`"tanh:<lambda>"`."""
    name, _, scale = initial.partition(':')
    try:
        value = math.tanh(float(scale or 1.0))
    except ValueError:
        value = math.nan
    if name != 'tanh' or not value > 0:
        raise ArgumentError('initial', repr(initial), 'a tensor, "tanh" and "tanh:<lambda>" with lambda above 0')
    return value
