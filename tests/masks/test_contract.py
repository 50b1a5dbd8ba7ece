"""Every mask on every graph: the matrix of its equation, and the behaviour of that matrix."""

import sys
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pytest
import torch
from graphs import GRAPH_NAMES, GRAPHS, NAMES_WITH_NODES, small_digraph
from grids import by_day
from numpy.typing import NDArray
from oracles import as_numpy, grf_loads, hop_matrix, path_products, power_series, same_graph, weight_matrix
from sampled_features import modulated
from torch import Tensor
from torch_geometric.data import Data

from pyg_topomask.graphs.graph import Graph
from pyg_topomask.masks import (
    AdjacencyMask,
    DenseMask,
    GRFMask,
    HopMask,
    LearnedFeaturesMask,
    LowRankMask,
    Mask,
    PackingMask,
    PowerSeriesMask,
)
from pyg_topomask.operators.base import MaskOperator
from pyg_topomask.operators.composed import Chain
from pyg_topomask.testing import assert_mask_operator

pytestmark = pytest.mark.filterwarnings('ignore:The spectral radius')

Matrix = NDArray[np.float64]
MODULATION = torch.tensor([[1.0, 0.5, -0.25], [0.75, 0.0, 0.5]])


class Case(NamedTuple):
    make: Callable[[Data], Mask]
    matrix: Callable[[Mask, Data], Matrix]


def numbers(seed: int, *size: int) -> Tensor:
    return torch.randn(*size, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def nodes(data: Data) -> int:
    return data.num_nodes or 0


def low_rank(data: Data) -> LowRankMask:
    return LowRankMask(2, numbers(1, nodes(data), 2, 3), numbers(2, nodes(data), 2, 3))


def low_rank_matrix(data: Data) -> Matrix:
    left, right = numbers(1, nodes(data), 2, 3).numpy(), numbers(2, nodes(data), 2, 3).numpy()
    return np.einsum('nhr,khr->hnk', left, right) * same_graph(data)


def learned_matrix(mask: Mask, data: Data) -> Matrix:
    batch = as_numpy(data)[3]
    position = np.array([np.sum(batch[:i] == batch[i]) for i in range(len(batch))], dtype=int)
    features = mask.features.detach().double().numpy()[position].transpose(1, 0, 2)
    return features @ features.transpose(0, 2, 1) * same_graph(data)


def adjacency(self_loop: float | None, normalization: str | None) -> Case:
    def matrix(mask: Mask, data: Data) -> Matrix:
        weight = weight_matrix(data, normalization) + (self_loop or 0.0) * np.eye(nodes(data))
        return np.stack([weight, weight])

    return Case(lambda data: AdjacencyMask(2, self_loop, normalization), matrix)


def grf(normalization: str | None = 'sym', independent: bool = False) -> Case:
    def matrix(mask: Mask, data: Data) -> Matrix:
        query, key = (grf_features(data, normalization=normalization, keys=keys) for keys in (False, independent))
        return query @ key.transpose(0, 2, 1)

    settings = {'normalization': normalization, 'independent_ensembles': independent}
    return Case(lambda data: GRFMask(2, 3, 0.3, 2, MODULATION, **settings), matrix)


def grf_features(data: Data, modulation: Tensor = MODULATION, **settings: object) -> Matrix:
    return np.einsum('hl,lij->hij', modulation.double().numpy(), grf_loads(data, 3, 0.3, 2, **settings))


def grf_matrix(mask: Mask, data: Data) -> Matrix:
    features = grf_features(data)
    return features @ features.transpose(0, 2, 1)


def of_its_walks(**settings: object) -> Case:
    """A mask of walks that are taken from it, and that the tests of walks are about."""

    def matrix(mask: Mask, data: Data) -> Matrix:
        features = modulated(mask.prepare(Graph.from_data(data)).query, MODULATION.double())
        return features if settings.get('asymmetric') else features @ features.transpose(0, 2, 1)

    return Case(lambda data: GRFMask(2, 4, 0.3, 2, MODULATION, **settings), matrix)


def grf_pairs(data: Data) -> Mask:
    mask = GRFMask(2, 3, 0.3, 2, MODULATION, asymmetric='pairs')
    with torch.no_grad():
        mask.key_modulation.copy_(MODULATION.flip(1))
    return mask


def grf_pairs_matrix(mask: Mask, data: Data) -> Matrix:
    return grf_features(data) @ grf_features(data, MODULATION.flip(1)).transpose(0, 2, 1)


def power_series_matrix(mask: Mask, data: Data) -> Matrix:
    return np.stack([power_series(weight_matrix(data, 'sym'), coefficients) for coefficients in MODULATION.double().numpy()])


def composed_hadamard(data: Data) -> Mask:
    return GRFMask(2, 3, 0.3, 2, MODULATION) * low_rank(data)


def with_zero_rows(data: Data) -> Tensor:
    matrix = numbers(0, 2, nodes(data), nodes(data))
    matrix[:, ::3] = 0.0
    return matrix


class ChainMask(Mask):
    """The product of the matrices of two masks."""

    def __init__(self, first: Mask, second: Mask) -> None:
        super().__init__(2)
        self.first = first
        self.second = second

    def prepare(self, graph: Graph, generator: torch.Generator | None = None) -> Graph:
        return graph

    def bind(self, graph: Graph, state: Graph) -> MaskOperator:
        return Chain((self.first(graph), self.second(graph)))


CASES = {
    'packing': Case(lambda data: PackingMask(2), lambda mask, data: np.stack([same_graph(data)] * 2)),
    'adjacency': adjacency(1.0, None),
    'adjacency_no_loop': adjacency(None, 'sym'),
    'adjacency_rw': adjacency(0.5, 'rw'),
    'dense': Case(
        lambda data: DenseMask(2, numbers(0, 2, nodes(data), nodes(data))),
        lambda mask, data: numbers(0, 2, nodes(data), nodes(data)).numpy() * same_graph(data),
    ),
    'dense_shared': Case(
        lambda data: DenseMask(1, numbers(0, nodes(data), nodes(data))),
        lambda mask, data: numbers(0, 1, nodes(data), nodes(data)).numpy() * same_graph(data),
    ),
    'low_rank': Case(low_rank, lambda mask, data: low_rank_matrix(data)),
    'learned': Case(lambda data: LearnedFeaturesMask(2, 30, 3), learned_matrix),
    'grf': grf(),
    'grf_independent': grf(None, independent=True),
    'grf_rw': grf('rw'),
    'grf_one_hot_keys': Case(
        lambda data: GRFMask(2, 3, 0.3, 2, MODULATION, asymmetric=True), lambda mask, data: grf_features(data)
    ),
    'grf_pairs': Case(grf_pairs, grf_pairs_matrix),
    'grf_antithetic': of_its_walks(asymmetric=True, sampler='antithetic'),
    'grf_repelling': of_its_walks(sampler='repelling'),
    'grf_weight': of_its_walks(transition='weight', walk_length='poisson:1.5'),
    'grf_counts': of_its_walks(importance=False),
    'power_series': Case(lambda data: PowerSeriesMask(2, 2, MODULATION), power_series_matrix),
    'power_series_f': Case(
        lambda data: PowerSeriesMask(2, 2, torch.tensor([[1.0, 0.5], [4.0, -1.0]]), 'f', 'rw'),  # the first numbers of f * f
        lambda mask, data: np.stack(
            [power_series(weight_matrix(data, 'rw'), np.convolve(f, f)) for f in ([1.0, 0.25], [2.0, -0.25])]
        ),
    ),
    'transposed_power_series': Case(
        lambda data: PowerSeriesMask(2, 2, MODULATION).T,
        lambda mask, data: power_series_matrix(mask, data).transpose(0, 2, 1),
    ),
    'transposed_grf_one_hot_keys': Case(
        lambda data: GRFMask(2, 3, 0.3, 2, MODULATION, asymmetric=True).T,
        lambda mask, data: grf_features(data).transpose(0, 2, 1),
    ),
    'hop': Case(lambda data: HopMask(2, 2, MODULATION), lambda mask, data: hop_matrix(mask.f, data)),
    'hop_path_weights': Case(
        lambda data: HopMask(2, 2, MODULATION, path_weights='mean'),
        lambda mask, data: hop_matrix(mask.f, data) * path_products(data, 2, np.mean),
    ),
    'sum': Case(
        lambda data: AdjacencyMask(2) + PackingMask() + low_rank(data),
        lambda mask, data: weight_matrix(data, None) + np.eye(nodes(data)) + same_graph(data) + low_rank_matrix(data),
    ),
    'sum_of_sparse': Case(
        lambda data: AdjacencyMask(2, None) + HopMask(2, 2, MODULATION),
        lambda mask, data: weight_matrix(data, None) + hop_matrix(MODULATION, data),
    ),
    'chain': Case(
        lambda data: ChainMask(AdjacencyMask(2, None), PowerSeriesMask(2, 2, MODULATION)),
        lambda mask, data: weight_matrix(data, None) @ power_series_matrix(mask, data),
    ),
    'zero_rows': Case(
        lambda data: DenseMask(2, with_zero_rows(data)),
        lambda mask, data: with_zero_rows(data).numpy() * same_graph(data),
    ),
    'scaled': Case(lambda data: -2.5 * low_rank(data), lambda mask, data: -2.5 * low_rank_matrix(data)),
    'scaled_per_head': Case(
        lambda data: AdjacencyMask(self_loop=None) * torch.tensor([2.0, -1.0]),
        lambda mask, data: np.array([2.0, -1.0]).reshape(2, 1, 1) * weight_matrix(data, None),
    ),
    'transposed': Case(lambda data: AdjacencyMask(2, None).T, lambda mask, data: np.stack([weight_matrix(data, None).T] * 2)),
    'transposed_grf': Case(
        lambda data: GRFMask(2, 3, 0.3, 2, MODULATION, independent_ensembles=True).T,
        lambda mask, data: (
            grf_features(data, keys=True) @ grf_features(data).transpose(0, 2, 1)  # of independent ensembles
        ),
    ),
    'hadamard': Case(composed_hadamard, lambda mask, data: grf_matrix(mask, data) * low_rank_matrix(data)),
    'hadamard_low_rank': Case(
        lambda data: low_rank(data) * low_rank(data).T,
        lambda mask, data: low_rank_matrix(data) * low_rank_matrix(data).transpose(0, 2, 1),
    ),
    'nested': Case(
        lambda data: (low_rank(data) * (AdjacencyMask(2, None) + PackingMask())).T + -PackingMask(2),
        lambda mask, data: (
            (low_rank_matrix(data) * (weight_matrix(data, None) + same_graph(data))).transpose(0, 2, 1) - same_graph(data)
        ),
    ),
}


@pytest.mark.parametrize('graph', NAMES_WITH_NODES)
@pytest.mark.parametrize('case', CASES)
def test_mask_is_the_matrix_of_its_equation(case: str, graph: str) -> None:
    data = GRAPHS[graph]()
    mask = CASES[case].make(data).double()
    expected = CASES[case].matrix(mask, data)
    actual = mask(data).to_dense().detach().numpy()
    np.testing.assert_allclose(actual, np.broadcast_to(expected, actual.shape), rtol=1e-5, atol=1e-6)
    assert actual.shape == (mask.heads, nodes(data), nodes(data))


#: Their operators are those of other cases with other numbers. By day, they behave as their matrix on a batch.
OTHER_NUMBERS = {'adjacency_no_loop', 'adjacency_rw', 'grf_rw', 'grf_antithetic', 'grf_repelling', 'grf_weight', 'grf_counts'}
OTHER_NUMBERS |= {'power_series_f', 'transposed_power_series', 'transposed_grf', 'transposed_grf_one_hot_keys'}
DAILY = by_day(CASES, CASES.keys() - OTHER_NUMBERS)


@pytest.mark.parametrize(
    ('case', 'graph'),
    [
        pytest.param(*case.values, *graph.values, marks=[*graph.marks, *(case.marks if graph.values != ('batch',) else ())])
        for case in DAILY
        for graph in GRAPH_NAMES
    ],
)
def test_operator_behaves_as_its_matrix(case: str, graph: str) -> None:
    data = GRAPHS[graph]()
    assert_mask_operator(CASES[case].make(data), data, alone=case not in OF_GIVEN_NUMBERS)


@pytest.mark.parametrize('case', DAILY)
def test_operator_behaves_as_its_matrix_without_numba(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, 'numba', None)
    data = GRAPHS['batch']()
    assert_mask_operator(CASES[case].make(data), data, alone=case not in OF_GIVEN_NUMBERS)


def test_entries_of_a_sum_have_a_bound() -> None:
    one_way = AdjacencyMask(2, None)  # whose pattern and transpose differ
    entries = (one_way + one_way.T)(small_digraph()).entries
    assert entries is not None
    assert entries.max_nnz is not None
    assert entries().pattern.nnz <= entries.max_nnz


#: Given numbers for the nodes of one data set, which fit no part of it.
OF_GIVEN_NUMBERS = {'dense', 'dense_shared', 'zero_rows', 'low_rank', 'sum', 'scaled', 'nested'}
OF_GIVEN_NUMBERS |= {'hadamard', 'hadamard_low_rank'}
LEARNABLE = [
    'learned',
    'adjacency',
    'adjacency_rw',
    'grf',
    'grf_independent',
    'grf_rw',
    'grf_one_hot_keys',
    'grf_pairs',
    'grf_counts',
    'power_series',
    'power_series_f',
    'hop',
    'sum',
    'transposed_grf',
    'transposed_power_series',
    'hadamard',
]


@pytest.mark.parametrize('case', LEARNABLE)
def test_gradients_reach_every_parameter_of_the_mask(case: str) -> None:
    data = GRAPHS['weighted']()
    mask = CASES[case].make(data).double()
    mask(data).to_dense().square().sum().backward()
    assert all(parameter.grad is not None and parameter.grad.any() for parameter in mask.parameters())


@pytest.mark.parametrize('case', by_day(CASES, ['adjacency', 'dense', 'grf', 'learned', 'power_series', 'hop', 'nested']))
def test_mask_of_edges_given_as_32_bit_integers(case: str) -> None:
    data = GRAPHS['batch']()
    mask = CASES[case].make(data).double()
    expected = mask(data).to_dense()
    data.edge_index, data.batch = data.edge_index.int(), data.batch.int()
    torch.testing.assert_close(mask(data).to_dense(), expected)
