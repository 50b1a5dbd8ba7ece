"""GRF masks whose queries and keys have features of their own."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from graphs import small_digraph, small_graph, small_weighted_graph
from grf_samples import COMPARISONS, F, make, scores
from grids import at_night, by_day
from numpy.typing import NDArray
from oracles import confidence, power_series, weight_matrix
from torch import Tensor
from torch_geometric.data import Data

from pyg_topomask.graphs.graph import Graph
from pyg_topomask.masks import GRFMask
from pyg_topomask.transforms import AddGraphRandomFeatures

F_KEYS = [0.7, -0.5, 0.9]


def series(data: Data, coefficients: object, normalization: str | None = 'sym') -> NDArray[np.float64]:
    return power_series(weight_matrix(data, normalization), np.asarray(coefficients))


def make_pairs(**settings: object) -> GRFMask:
    mask = make(asymmetric='pairs', **settings)
    with torch.no_grad():
        mask.key_modulation.copy_(torch.tensor([F_KEYS]))
    return mask


ONE_HOT = {
    'undirected': (small_graph, {}),
    'directed': (small_digraph, {}),
    'directed_rw_poisson': (small_digraph, {'normalization': 'rw', 'walk_length': 'poisson:1.5'}),
    'weighted_by_weight': (small_weighted_graph, {'transition': 'weight'}),
    'directed_antithetic': (small_digraph, {'sampler': 'antithetic', 'num_walks': 4}),
    'unnormalized_repelling': (small_graph, {'normalization': None, 'sampler': 'repelling'}),
}


@pytest.mark.parametrize('name', by_day(ONE_HOT, ['directed_rw_poisson', 'weighted_by_weight']))
def test_keys_without_walks_make_the_mask_the_series_itself_also_on_the_diagonal(name: str) -> None:
    """Eq. 27: the expected mask is sum_l f_l W^l, of directed graphs too."""
    graph, settings = ONE_HOT[name]
    data = graph()
    z_scores = scores(
        make(asymmetric=True, **settings), data, series(data, F, settings.get('normalization', 'sym')), counter=True
    )
    assert np.abs(z_scores).max() < confidence(COMPARISONS)


@pytest.mark.parametrize(
    ('graph', 'settings'),
    [
        at_night(small_weighted_graph, {}),
        at_night(small_digraph, {}),
        (small_digraph, {'transition': 'weight', 'walk_length': 'poisson:1.5', 'normalization': 'rw'}),
    ],
    ids=['weighted', 'directed', 'directed_by_weight'],
)
def test_pairs_of_two_ensembles_are_unbiased_everywhere(graph: Callable[[], Data], settings: dict[str, object]) -> None:
    """Eq. 25: (sum_l f1_l W^l) (sum_l f2_l W^l)^T."""
    data = graph()
    normalization = settings.get('normalization', 'sym')
    expected = series(data, F, normalization) @ series(data, F_KEYS, normalization).T
    z_scores = scores(make_pairs(independent_ensembles=True, **settings), data, expected, counter=True)
    assert np.abs(z_scores).max() < confidence(COMPARISONS)


def test_counted_visits_are_expected_with_the_probabilities_of_their_walks() -> None:
    """Eq. 24: sum_l f_l S_l P^l, with P the hops of a simple random walk, whatever the edge weights."""
    data = small_digraph()
    steps = np.zeros((6, 6))
    np.add.at(steps, tuple(data.edge_index.flip(0).numpy()), 1.0)
    steps /= np.maximum(steps.sum(1, keepdims=True), 1.0)
    expected = power_series(steps, np.array(F) * 0.7 ** np.arange(3))
    z_scores = scores(make(asymmetric=True, importance=False), data, expected, counter=True)
    assert np.abs(z_scores).max() < confidence(COMPARISONS)


def test_keys_without_walks_are_the_query_features_alone() -> None:
    data = small_digraph()
    state = make(independent_ensembles=True).prepare(Graph.from_data(data))
    one_hot, pairs = make(asymmetric=True).double(), make(asymmetric='pairs', modulation=torch.tensor(F)).double()
    with torch.no_grad():
        pairs.key_modulation.copy_(torch.tensor([[1.0, 0.0, 0.0]]))
    graph = Graph.from_data(data)
    torch.testing.assert_close(one_hot.bind(graph, state).to_dense(), pairs.bind(graph, state).to_dense())


@pytest.mark.parametrize('asymmetric', [1, np.True_])
def test_any_true_value_is_true(asymmetric: object) -> None:
    assert torch.equal(make(asymmetric=asymmetric)(small_graph()).to_dense(), make(asymmetric=True)(small_graph()).to_dense())
    with pytest.raises(ValueError, match=r'^independent_ensembles: got'):
        make(asymmetric=asymmetric, independent_ensembles=True)


def test_pairs_that_start_equal_are_symmetric_features() -> None:
    data = small_graph()
    pairs = make(asymmetric='pairs')
    assert torch.equal(pairs.modulation, pairs.key_modulation)
    assert pairs.modulation is not pairs.key_modulation
    torch.testing.assert_close(pairs(data).to_dense(), make()(data).to_dense())
    torch.testing.assert_close(pairs(data).entries().value, make()(data).entries().value)


@pytest.mark.parametrize('independent', [False, True])
def test_gradients_of_both_modulations_through_entries_and_through_products_agree(independent: bool) -> None:
    mask = GRFMask(2, 4, 0.3, 3, asymmetric='pairs', independent_ensembles=independent, positive=False).double()
    with torch.no_grad():
        mask.key_modulation.mul_(torch.tensor([1.0, -0.5, 2.0, 0.3]))
    parameters, operator = [mask.modulation, mask.key_modulation], mask(small_digraph())
    weight = torch.randn(6, 6, dtype=torch.float64)
    by_products = torch.autograd.grad((operator.to_dense() * weight).sum(), parameters)
    entries = operator.entries()
    picked = weight[entries.pattern.row.long(), entries.pattern.col.long()]
    by_entries = torch.autograd.grad((entries.value * picked).sum(), parameters)
    for product, entry in zip(by_products, by_entries, strict=True):
        torch.testing.assert_close(product, entry, rtol=1e-6, atol=1e-6)
    assert not torch.allclose(*by_products)


@pytest.mark.parametrize(
    'settings', [{'asymmetric': True}, {'asymmetric': 'pairs'}, {'share_modulation': True}, {'positive': False}], ids=str
)
def test_gradients_of_the_parameters(settings: dict[str, object]) -> None:
    mask = GRFMask(2, 4, 0.3, 2, **settings).double()
    graph, names = Graph.from_data(small_digraph()), [name for name, _ in mask.named_parameters()]

    def product(x: Tensor, *parameters: Tensor) -> Tensor:
        return torch.func.functional_call(mask, dict(zip(names, parameters, strict=True)), (graph,)).matmul(x)

    parameters = [parameter.detach().clone().requires_grad_() for parameter in mask.parameters()]
    x = torch.randn(6, 2, 2, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(product, (x, *parameters), atol=1e-6)


def test_walks_stored_with_two_ensembles_serve_keys_without_walks() -> None:
    data = AddGraphRandomFeatures(num_walks=4, independent_ensembles=True, seed=3)(small_graph())
    stored = GRFMask(num_walks=4, asymmetric=True)(data).to_dense()
    torch.testing.assert_close(stored, GRFMask(num_walks=4, asymmetric=True, seed=3)(small_graph()).to_dense())
    with pytest.raises(ValueError, match=r'^data: got walks stored with .* and importance=True; .*importance=False'):
        GRFMask(num_walks=4, asymmetric=True, importance=False)(data)


@pytest.mark.parametrize('order', [[0, 1, 2], [2, 1, 0]])
def test_entries_of_masks_that_share_walks_are_those_of_their_products(order: list[int]) -> None:
    graph, masks = Graph.from_data(small_digraph()), (make(), make_pairs(), make().double())
    for mask in (masks[index] for index in order):
        operator = mask(graph)
        entries = operator.entries()
        product = operator.matmul(torch.eye(6, dtype=mask.f.dtype).unsqueeze(1))
        matrix = entries.value.new_zeros(6, 6).index_put((entries.pattern.row, entries.pattern.col), entries.value[0])
        torch.testing.assert_close(matrix, product[:, 0])
