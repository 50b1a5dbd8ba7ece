"""The public assertions pass for what is right and fail for each thing that they promise to check."""

import math
import re
from dataclasses import dataclass, replace

import pytest
import torch
from graphs import GRAPHS, ring, small_graph, uneven_graphs
from torch import Tensor
from torch_geometric.data import Data

from pyg_topomask.graphs.graph import Graph
from pyg_topomask.graphs.segments import Segments
from pyg_topomask.graphs.sparse_pattern import SparsePattern
from pyg_topomask.masks import AdjacencyMask, DenseMask, GRFMask, Mask, PackingMask, sparse_operator
from pyg_topomask.masks.dense import Dense
from pyg_topomask.nn import MaskedLinearAttention
from pyg_topomask.operators.base import LowRank, MaskOperator
from pyg_topomask.operators.composed import Alternatives
from pyg_topomask.operators.forms import Entries, SparseEntries
from pyg_topomask.testing import assert_batch_invariant, assert_mask_operator, assert_permutation_equivariant


@dataclass(eq=False, repr=False)
class WrongTranspose(Dense):
    @property
    def T(self) -> MaskOperator:
        return self


@dataclass(eq=False, repr=False)
class WrongMagnitude(Dense):
    def magnitude(self, x: Tensor) -> Tensor:
        return 0.1 * super().magnitude(x)


@dataclass(eq=False, repr=False)
class Detached(Dense):
    def apply(self, x: Tensor) -> Tensor:
        return Dense(self.matrix.detach()).apply(x)


@dataclass(eq=False, repr=False)
class Nonlinear(Dense):
    def apply(self, x: Tensor) -> Tensor:
        return super().apply(x).abs()


@dataclass(eq=False, repr=False)
class OneWay(Dense):
    """The transpose of its transpose is that transpose again."""

    turned: bool = False

    @property
    def T(self) -> MaskOperator:
        return replace(self, turned=True, matrix=self.matrix if self.turned else self.matrix.transpose(1, 2))


@dataclass(eq=False, repr=False)
class HugeMagnitude(Dense):
    """A bound, but one beside which every denominator is lost to rounding."""

    def magnitude(self, x: Tensor) -> Tensor:
        return 1e30 * super().magnitude(x)


class KindMask(DenseMask):
    def __init__(self, kind: type[Dense], size: int = 6) -> None:
        super().__init__(matrix=torch.rand(size, size) - 0.3)
        self.kind = kind

    def bind(self, graph: Graph, state: None) -> MaskOperator:
        given = super().bind(graph, state)
        return self.kind(given.matrix, segments=graph.segments, cost=given.cost)


class LeakingMask(DenseMask):
    def bind(self, graph: Graph, state: None) -> MaskOperator:
        return Dense(self.matrix.unsqueeze(0), segments=graph.segments, cost=graph.num_nodes)


class WholeBatch(AdjacencyMask):
    def bind(self, graph: Graph, state: object) -> MaskOperator:
        return super().bind(graph, state) * (1.0 / graph.num_nodes)


class WithoutBatch(AdjacencyMask):
    def bind(self, graph: Graph, state: object) -> MaskOperator:
        operator = super().bind(graph, state)
        operator.segments = Segments(graph.num_nodes)
        return operator


class WithoutNumGraphs(AdjacencyMask):
    def bind(self, graph: Graph, state: object) -> MaskOperator:
        operator = super().bind(graph, state)
        operator.segments = Segments(graph.num_nodes, graph.batch, graph.num_graphs + 1)
        return operator


def with_entries(operator: MaskOperator, entries: SparseEntries) -> MaskOperator:
    return Alternatives(operator, entries, segments=operator.segments, heads=operator.heads, cost=operator.cost)


class WrongEntries(AdjacencyMask):
    def bind(self, graph: Graph, state: object) -> MaskOperator:
        operator = super().bind(graph, state)
        entries = operator.entries()
        return with_entries(operator, SparseEntries(lambda: Entries(entries.pattern, entries.value * 1.01)))


class EntriesOneWay(AdjacencyMask):
    """The entries of its transpose are its own."""

    def __init__(self) -> None:
        super().__init__(normalization='rw')

    def bind(self, graph: Graph, state: object) -> MaskOperator:
        operator = super().bind(graph, state)

        class OneWayEntries(SparseEntries):
            def transposed(self) -> SparseEntries:
                return self

        return with_entries(operator, OneWayEntries(operator.entries.make, operator.entries.max_nnz))


class TooFewEntries(AdjacencyMask):
    def bind(self, graph: Graph, state: object) -> MaskOperator:
        operator = super().bind(graph, state)
        return with_entries(operator, replace(operator.entries, max_nnz=operator.entries.max_nnz - 1))


class UncountedEntries(AdjacencyMask):
    def bind(self, graph: Graph, state: object) -> MaskOperator:
        operator = super().bind(graph, state)
        return with_entries(operator, replace(operator.entries, max_nnz=None))


class WrongFactors(PackingMask):
    def bind(self, graph: Graph, state: None) -> MaskOperator:
        given = super().bind(graph, state)
        return OtherFactors(given.left, given.right, given.index, given.ptr, segments=given.segments, cost=given.cost)


@dataclass(eq=False, repr=False)
class OtherFactors(LowRank):
    @property
    def low_rank(self) -> LowRank:
        return replace(self, left=self.left * 1.01)


@dataclass(eq=False, repr=False)
class WrongSum(Dense):
    def __add__(self, other: MaskOperator) -> MaskOperator:
        return super().__add__(1.01 * other)


@dataclass(eq=False, repr=False)
class WrongScale(Dense):
    def __rmul__(self, other: Tensor) -> MaskOperator:
        return super().__mul__(1.01 * other)


@dataclass(eq=False, repr=False)
class WrongHadamard(Dense):
    def __mul__(self, other: MaskOperator) -> MaskOperator:
        return super().__mul__(1.01 * other)


@dataclass(eq=False, repr=False)
class WrongShape(Dense):
    def to_dense(self) -> Tensor:
        return super().to_dense()[0]


class OperatorMask(DenseMask):
    """A mask whose operator is of a class of its own, or has other sizes than it should."""

    def __init__(self, kind: type[Dense] = Dense, more_nodes: int = 0, heads: int = 1) -> None:
        super().__init__(matrix=torch.rand(6 + more_nodes, 6 + more_nodes))
        self.kind, self.own_heads = kind, heads

    def bind(self, graph: Graph, state: None) -> MaskOperator:
        segments = Segments(self.matrix.size(0))
        return self.kind(self.matrix.unsqueeze(0), segments=segments, heads=self.own_heads, cost=self.matrix.numel())


def test_wrong_operators_are_told(subtests: pytest.Subtests) -> None:
    for mask, message in [
        (KindMask(WrongTranspose), '^T: differs'),
        (KindMask(OneWay), r'^T\.T: differs'),
        (KindMask(HugeMagnitude), '^route auto: differs'),
        (OperatorMask(WrongSum), '^sum: differs'),
        (OperatorMask(WrongScale), '^scale: differs'),
        (OperatorMask(WrongHadamard), '^Hadamard: differs'),
        (OperatorMask(WrongShape), r'^to_dense: got shape \(6, 6\)'),
        (OperatorMask(more_nodes=1), '^num_nodes: got 7, the data has 6'),
        (TooFewEntries(), '^entries: more than max_nnz'),
        (KindMask(WrongMagnitude), '^magnitude'),
        (KindMask(Nonlinear), 'differs|Jacobian|gradient'),
        (WrongEntries(), '^entries: differs'),
        (EntriesOneWay(), '^entries of T: differs'),
        (WrongFactors(), '^low_rank: differs'),
    ]:
        with subtests.test(mask=mask, message=message), pytest.raises(AssertionError, match=message):
            assert_mask_operator(mask, small_graph())


def test_missing_gradient_is_told() -> None:
    # Of few numbers, and of many.
    for size, data in ((6, small_graph()), (12, Data(edge_index=ring(12), num_nodes=12))):
        with pytest.raises(AssertionError, match=r'^matmul: wrong gradient$'):
            assert_mask_operator(KindMask(Detached, size), data)


class Unlearned(AdjacencyMask):
    def __init__(self) -> None:
        super().__init__()
        self.scale, self.shift, self.fixed = (torch.nn.Parameter(torch.ones(1)) for _ in range(3))
        self.fixed.requires_grad_(False)

    def bind(self, graph: Graph, state: object) -> MaskOperator:
        return super().bind(graph, state) * float(self.scale.detach())


class Frozen(Unlearned):
    def bind(self, graph: Graph, state: object) -> MaskOperator:
        with torch.no_grad():
            return super().bind(graph, state)


@pytest.mark.parametrize(('mask', 'names'), [(Unlearned(), 'scale, shift'), (Frozen(), 'self_loop, scale, shift')])
def test_parameters_without_a_gradient_are_told(mask: Mask, names: str) -> None:
    with pytest.raises(AssertionError, match=rf'^parameters: {names} receive no gradient'):
        assert_mask_operator(mask, small_graph())


class Scaled(AdjacencyMask):
    """A mask with a parameter whose gradient is right."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = torch.nn.Parameter(torch.full((1,), 0.7))

    def factor(self) -> Tensor:
        return self.scale

    def bind(self, graph: Graph, state: object) -> MaskOperator:
        return super().bind(graph, state) * self.factor()


class HalfDetached(Scaled):
    def factor(self) -> Tensor:
        return self.scale + self.scale.detach()


class WrongBackward(Scaled):
    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx: object, x: Tensor) -> Tensor:
            return 2.0 * x

        @staticmethod
        def backward(ctx: object, grad: Tensor) -> Tensor:
            return grad

    def factor(self) -> Tensor:
        return self.Double.apply(self.scale)


def test_wrong_gradients_of_parameters_are_told() -> None:
    assert_mask_operator(Scaled(), small_graph())
    for mask in (HalfDetached(), WrongBackward()):
        with pytest.raises(AssertionError, match=r'^parameters: self_loop, scale: wrong gradient$'):
            assert_mask_operator(mask, small_graph())


class RandomScale(Scaled):
    def factor(self) -> Tensor:
        return self.scale * torch.rand(1, dtype=torch.float64)


class KeepsItsState(AdjacencyMask):
    """Each binding counts, as if a state on the mask were another graph's."""

    bindings = 0

    def bind(self, graph: Graph, state: object) -> MaskOperator:
        self.bindings += 1
        return super().bind(graph, state) * float(self.bindings)


def test_a_mask_that_differs_the_next_time_is_told() -> None:
    with pytest.raises(AssertionError, match=r'^to_dense of the same graph, again: differs'):
        assert_mask_operator(KeepsItsState(), small_graph())


def test_random_masks_draw_the_same_numbers_in_every_check() -> None:
    state = torch.get_rng_state()
    for mask in (RandomScale(), GRFMask(num_walks=4, resample='forward')):
        assert_mask_operator(mask, small_graph())
    assert torch.equal(torch.get_rng_state(), state)


class GivenOrder(Mask):
    """Entries in the order of the edges."""

    def prepare(self, graph: Graph, generator: torch.Generator | None = None) -> SparsePattern:
        return SparsePattern.from_sorted(*graph.row_and_col(), graph.num_nodes, graph.num_nodes)

    def bind(self, graph: Graph, state: SparsePattern) -> MaskOperator:
        return sparse_operator(graph, state, torch.ones(1, state.nnz))


def test_entries_out_of_order_are_told() -> None:
    edges = [(0, 1), (0, 2), (2, 0), (1, 2)]
    for order, message in (
        ([0, 1, 3, 2], r'\(0, 2\) after \(2, 1\)'),
        ([2, 0, 0, 3], r'\(1, 0\) after \(1, 0\)'),
        ([2, 0, 3, 1], r'\(2, 0\) after \(2, 1\)'),
    ):
        data = Data(edge_index=torch.tensor([edges[index] for index in order]).t(), num_nodes=3)
        with pytest.raises(AssertionError, match=f'^entries: {message}, where .row, column. has to ascend'):
            assert_mask_operator(GivenOrder(), data)
    ascending = sorted(edges, key=lambda edge: edge[::-1])
    assert_mask_operator(GivenOrder(), Data(edge_index=torch.tensor(ascending).t(), num_nodes=3))


@pytest.mark.parametrize('form', ['low_rank', 'product'])
def test_wrong_form_is_told(form: str) -> None:
    mask = AdjacencyMask()
    mask.form = form
    with pytest.raises(AssertionError, match=f"^form: '{form}' for an operator with entries: True, with factors: False"):
        assert_mask_operator(mask, small_graph())


class NaNMask(Mask):
    def prepare(self, graph: Graph, generator: torch.Generator | None = None) -> None:
        return None

    def bind(self, graph: Graph, state: None) -> MaskOperator:
        nodes = torch.arange(graph.num_nodes)
        pattern = SparsePattern.from_sorted(nodes, nodes, graph.num_nodes, graph.num_nodes)
        return sparse_operator(graph, pattern, torch.full((1, graph.num_nodes), float('nan'), dtype=torch.float64))


def test_numbers_that_are_not_finite_are_told() -> None:
    with pytest.raises(AssertionError, match=r'^to_dense: the mask has entries that are NaN'):
        assert_mask_operator(NaNMask(), GRAPHS['batch']())


def test_leak_between_graphs_is_told() -> None:
    with pytest.raises(AssertionError, match='between different graphs'):
        assert_mask_operator(LeakingMask(matrix=torch.ones(40, 40)), GRAPHS['batch']())


@pytest.mark.parametrize('mask', [WithoutBatch(), WithoutNumGraphs()])
def test_operator_that_forgets_the_graphs_is_told(mask: Mask) -> None:
    with pytest.raises(AssertionError, match=r'^segments: got'):
        assert_mask_operator(mask, GRAPHS['batch']())


def test_mask_that_looks_at_the_whole_batch_is_told() -> None:
    data, mask = GRAPHS['batch'](), WholeBatch()
    with pytest.raises(AssertionError, match=r'^graph \d+ in the batch and alone: differs'):
        assert_mask_operator(mask, data)
    assert_mask_operator(mask, data, alone=False)


@pytest.mark.parametrize('mask', [KindMask(Dense), UncountedEntries()])
def test_right_operators_pass(mask: Mask) -> None:
    assert_mask_operator(mask, small_graph())


def by_position(x: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None, *_: object, **__: object) -> Tensor:
    return x * torch.arange(x.size(0)).unsqueeze(1)


def test_layer_that_looks_at_node_ids_is_not_equivariant() -> None:
    with pytest.raises(AssertionError, match='permutation equivariance: differs'):
        assert_permutation_equivariant(by_position, torch.ones(5, 2), small_graph().edge_index[:, :4])


def test_layer_that_looks_at_the_batch_is_not_invariant() -> None:
    graphs = uneven_graphs()
    for data in graphs:
        data.x = torch.ones(data.num_nodes, 2)
    with pytest.raises(AssertionError, match='batch invariance of graph'):
        assert_batch_invariant(by_position, graphs)
    with pytest.raises(AssertionError, match='batch invariance of graph'):
        assert_batch_invariant(lambda x, *_, **__: x - x.mean(0), [Data(x=torch.rand(n, 2)) for n in (2, 3)])


@pytest.mark.parametrize('order', [[0, 1], [1, 0], [0, 1, 0, 1]])
def test_every_order_is_tried(order: list[int]) -> None:
    """Layers that fail in one of the batches of a graph of two nodes and one of three alone."""
    graphs = [Data(x=torch.ones(n, 1), edge_index=torch.empty(2, 0, dtype=torch.long)) for n in (2, 3)]
    sizes = [graphs[index].num_nodes for index in order]

    def layer(x: Tensor, *_: object, graph: Graph) -> Tensor:
        return x + float(graph.batch is not None and torch.bincount(graph.batch).tolist() == sizes)

    with pytest.raises(AssertionError, match=re.escape(f'batch invariance of graph {order[0]} in {order}: differs')):
        assert_batch_invariant(layer, graphs)
    assert_batch_invariant(layer, graphs, orders=[[0], [1]])


@pytest.mark.parametrize('alone', [math.inf, math.nan])
@pytest.mark.parametrize('together', [1.0, -math.inf, math.nan])
def test_what_is_not_finite_is_no_excuse(alone: float, together: float) -> None:
    graphs = [Data(x=torch.ones(2, 1), edge_index=torch.empty(2, 0, dtype=torch.long))]
    with pytest.raises(AssertionError, match=r'batch invariance of graph 0 .*: differs in what is infinite or NaN'):
        assert_batch_invariant(lambda x, *_, graph: x * (alone if graph.batch is None else together), graphs)


def test_what_is_finite_is_compared_beside_infinities() -> None:
    graphs = [Data(x=torch.tensor([[math.inf], [-math.inf], [1.0]]), edge_index=torch.empty(2, 0, dtype=torch.long))]
    assert_batch_invariant(lambda x, *_, **__: x, graphs)
    with pytest.raises(AssertionError, match=r'batch invariance of graph 0 .*: differs by 1\.00e-01'):
        assert_batch_invariant(lambda x, *_, graph: x if graph.batch is None else x + 0.1, graphs)


def test_no_graphs_are_refused() -> None:
    with pytest.raises(ValueError, match='graphs: got none; accepted: at least one'):
        assert_batch_invariant(by_position, [])


def test_layers_of_the_package_pass() -> None:
    graphs = [Data(x=torch.randn(n, 4), edge_index=torch.empty(2, 0, dtype=torch.long)) for n in (1, 5)]
    assert_batch_invariant(MaskedLinearAttention(4), graphs)
    for mask in (PackingMask(), AdjacencyMask()):
        assert_permutation_equivariant(MaskedLinearAttention(4, mask=mask), torch.randn(6, 4), small_graph().edge_index)


def test_differences_are_relative_to_no_less_than_1() -> None:
    graphs = [Data(x=torch.zeros(2, 1), edge_index=torch.empty(2, 0, dtype=torch.long))]
    assert_batch_invariant(lambda x, *_, graph: x if graph.batch is None else x + 1e-5, graphs)
    with pytest.raises(AssertionError, match=r'differs by 2\.00e-04, accepted: 1\.00e-04'):
        assert_batch_invariant(lambda x, *_, graph: x if graph.batch is None else x + 2e-4, graphs)
