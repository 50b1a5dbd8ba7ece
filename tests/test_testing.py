"""The public assertions pass for what is right and fail for each thing that they promise to check."""

from dataclasses import dataclass

import pytest
import torch
from graphs import GRAPHS, small_graph, uneven_graphs
from torch import Tensor
from torch_geometric.data import Data

from pyg_topomask.graph import Graph
from pyg_topomask.masks import AdjacencyMask, DenseMask, Mask, PackingMask
from pyg_topomask.masks.dense import DenseStructure
from pyg_topomask.nn import MaskedLinearAttention
from pyg_topomask.operators import Entries, MaskOperator
from pyg_topomask.testing import assert_batch_invariant, assert_mask_operator, assert_permutation_equivariant


@dataclass(frozen=True)
class WrongTranspose(DenseStructure):
    def transpose(self, tensors: tuple[Tensor, ...]) -> tuple[DenseStructure, tuple[Tensor, ...]]:
        return self, tuple(tensors)


@dataclass(frozen=True)
class WrongMagnitude(DenseStructure):
    def magnitude(self, tensors: tuple[Tensor, ...], x: Tensor) -> Tensor:
        return 0.1 * super().magnitude(tensors, x)


@dataclass(frozen=True)
class Detached(DenseStructure):
    def apply(self, tensors: tuple[Tensor, ...], x: Tensor) -> Tensor:
        return super().apply((tensors[0].detach(),), x)


@dataclass(frozen=True)
class Nonlinear(DenseStructure):
    def apply(self, tensors: tuple[Tensor, ...], x: Tensor) -> Tensor:
        return super().apply(tensors, x).abs()


class StructureMask(DenseMask):
    def __init__(self, structure: DenseStructure, size: int = 6) -> None:
        super().__init__(matrix=torch.rand(size, size) - 0.3)
        self.structure = structure

    def bind(self, graph: Graph, state: None) -> MaskOperator:
        operator = super().bind(graph, state)
        return MaskOperator(self.structure, operator.tensors, graph.num_nodes, 1, graph.batch, graph.num_graphs)


class LeakingMask(DenseMask):
    def bind(self, graph: Graph, state: None) -> MaskOperator:
        return MaskOperator(DenseStructure(), (self.matrix.unsqueeze(0),), graph.num_nodes, 1, graph.batch, graph.num_graphs)


class WithoutBatch(AdjacencyMask):
    def bind(self, graph: Graph, state: object) -> MaskOperator:
        operator = super().bind(graph, state)
        operator.batch, operator.num_graphs = None, 1
        return operator


class WithoutNumGraphs(AdjacencyMask):
    def bind(self, graph: Graph, state: object) -> MaskOperator:
        operator = super().bind(graph, state)
        operator.num_graphs = 1
        return operator


class WrongEntries(AdjacencyMask):
    def bind(self, graph: Graph, state: object) -> MaskOperator:
        operator = super().bind(graph, state)
        own = operator.entries
        operator.entries = lambda: Entries(own().pattern, own().value * 1.01)
        return operator


class WrongFactors(PackingMask):
    def bind(self, graph: Graph, state: None) -> MaskOperator:
        operator = super().bind(graph, state)
        operator.factors = (operator.factors[0] * 1.01, operator.factors[1])
        return operator


@pytest.mark.parametrize(
    ('mask', 'message'),
    [
        (StructureMask(WrongTranspose()), '^T: differs'),
        (StructureMask(WrongMagnitude()), '^magnitude'),
        (StructureMask(Nonlinear()), 'differs|Jacobian|gradient'),
        (WrongEntries(), '^entries: differs'),
        (WrongFactors(), '^factors: differs'),
    ],
)
def test_wrong_operators_are_told(mask: Mask, message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        assert_mask_operator(mask, small_graph())


def test_missing_gradient_is_told() -> None:
    with pytest.raises((AssertionError, RuntimeError), match=r'(?i)gradient|jacobian'):
        assert_mask_operator(StructureMask(Detached()), small_graph())


def test_leak_between_graphs_is_told() -> None:
    with pytest.raises(AssertionError, match='between different graphs'):
        assert_mask_operator(LeakingMask(matrix=torch.ones(40, 40)), GRAPHS['batch']())


@pytest.mark.parametrize(('mask', 'name'), [(WithoutBatch(), 'batch'), (WithoutNumGraphs(), 'num_graphs')])
def test_operator_that_forgets_the_graphs_is_told(mask: Mask, name: str) -> None:
    with pytest.raises(AssertionError, match=f'^{name}: got'):
        assert_mask_operator(mask, GRAPHS['batch']())


def test_right_operators_pass() -> None:
    assert_mask_operator(StructureMask(DenseStructure()), small_graph())


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


def test_layers_of_the_package_pass() -> None:
    graphs = [Data(x=torch.randn(n, 4), edge_index=torch.empty(2, 0, dtype=torch.long)) for n in (1, 5)]
    assert_batch_invariant(MaskedLinearAttention(4), graphs)
    assert_permutation_equivariant(MaskedLinearAttention(4), torch.randn(6, 4), small_graph().edge_index)
