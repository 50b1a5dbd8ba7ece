import copy
import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from graphs import GRAPHS, small_digraph, small_graph, small_weighted_graph, uneven_graphs
from numpy.typing import NDArray
from oracles import confidence, power_series, standard_scores, weight_matrix
from torch import Tensor
from torch_geometric.data import Batch, Data

from pyg_topomask.graph import Graph
from pyg_topomask.masks import GRFMask, Mask, PackingMask
from pyg_topomask.transforms import AddGraphRandomFeatures

SEEDS = 600
COMPARISONS = 40 * 36  # an upper bound of the entries that the tests below compare
F = [1.0, 0.8, -0.3]
DIAGONAL = np.eye(6, dtype=bool)


def samples(mask: GRFMask, data: Data, counter: bool) -> NDArray[np.float64]:
    graphs = []
    for seed in range(SEEDS):
        if counter:
            mask.seed = seed
            operator = mask(data)
        else:
            operator = mask(data, torch.Generator().manual_seed(seed))
        graphs.append(operator.to_dense()[0].detach().double().numpy())
    return np.stack(graphs)


def scores(mask: GRFMask, data: Data, expected: NDArray[np.float64], counter: bool) -> NDArray[np.float64]:
    return standard_scores(samples(mask, data, counter), expected)


def make(**settings: object) -> GRFMask:
    return GRFMask(**{'num_walks': 3, 'p_halt': 0.3, 'max_walk_length': 2, 'modulation': torch.tensor(F)} | settings)


def expected_mask(data: Data, normalization: str | None = 'sym') -> NDArray[np.float64]:
    feature = power_series(weight_matrix(data, normalization), np.array(F))
    return feature @ feature.T


SETTINGS = {
    'undirected': (small_graph, {}),
    'weighted': (small_weighted_graph, {}),
    'directed': (small_digraph, {}),
    'directed_rw': (small_digraph, {'normalization': 'rw'}),
    'unnormalized': (small_graph, {'normalization': None}),
    'fixed_length': (small_graph, {'p_halt': 0.0}),
    'one_walk': (small_graph, {'num_walks': 1}),
}


@pytest.mark.parametrize(
    ('name', 'counter'), [*((name, True) for name in SETTINGS), ('weighted', False), ('fixed_length', False)]
)
def test_two_ensembles_are_unbiased_everywhere(name: str, counter: bool) -> None:
    graph, settings = SETTINGS[name]
    data = graph()
    found = scores(
        make(independent_ensembles=True, **settings), data, expected_mask(data, settings.get('normalization', 'sym')), counter
    )
    assert np.abs(found).max() < confidence(COMPARISONS)


@pytest.mark.parametrize('counter', [True, False], ids=['counter', 'generator'])
@pytest.mark.parametrize('name', ['undirected', 'directed', 'fixed_length'])
def test_one_ensemble_is_unbiased_off_the_diagonal_and_biased_upwards_on_it(name: str, counter: bool) -> None:
    graph, settings = SETTINGS[name]
    data = graph()
    found = scores(make(**settings), data, expected_mask(data), counter)
    assert np.abs(found[~DIAGONAL]).max() < confidence(COMPARISONS)
    walks = np.array([name != 'directed' or node != 5 for node in range(6)])  # a dead end has no variance, hence no bias
    assert found[DIAGONAL][walks].min() > confidence(COMPARISONS)


def test_mask_of_an_undirected_graph_is_the_power_series_of_the_convolved_modulation() -> None:
    """Lemma 3.1: sum_k alpha_k W^k with alpha = f * f."""
    data = small_weighted_graph()
    alpha = np.convolve(F, F)
    np.testing.assert_allclose(expected_mask(data), power_series(weight_matrix(data, 'sym'), alpha), atol=1e-12)
    found = scores(make(independent_ensembles=True), data, power_series(weight_matrix(data, 'sym'), alpha), counter=True)
    assert np.abs(found).max() < confidence(COMPARISONS)


def test_heads_share_the_walks_and_differ_in_the_modulation() -> None:
    modulation = torch.tensor([F, [0.5, 0.0, 1.0]])
    both = GRFMask(2, 3, 0.3, 2, modulation)(small_graph()).to_dense()
    for head in range(2):
        torch.testing.assert_close(both[head], GRFMask(1, 3, 0.3, 2, modulation[head])(small_graph()).to_dense()[0])


def test_modulation_starts_as_given_and_resets_to_it() -> None:
    mask = GRFMask(2, max_walk_length=2, modulation=torch.tensor(F))
    assert mask.modulation.tolist() == torch.tensor([F, F]).tolist()
    with torch.no_grad():
        mask.modulation.zero_()
    mask.reset_parameters()
    assert mask.modulation.tolist() == torch.tensor([F, F]).tolist()
    assert GRFMask(max_walk_length=2).modulation.tolist() == [[1.0, 0.5, 0.25]]


def test_modulation_is_kept_in_double_precision() -> None:
    modulation = torch.tensor([0.1, 0.2], dtype=torch.float64)
    mask = GRFMask(max_walk_length=1, modulation=modulation).double()
    torch.testing.assert_close(mask.modulation[0].detach(), modulation, rtol=0, atol=1e-8)


def test_walks_are_a_function_of_seed_and_graph() -> None:
    data = GRAPHS['batch']()
    first = GRFMask(seed=3)(data).to_dense()
    torch.rand(5)
    assert torch.equal(first, GRFMask(seed=3)(data).to_dense())
    assert not torch.equal(first, GRFMask(seed=4)(data).to_dense())
    assert torch.equal(first, copy.deepcopy(GRFMask(seed=3))(data).to_dense())


def test_ensembles_and_seeds_do_not_repeat_each_other() -> None:
    data = Data(edge_index=small_graph().edge_index, num_nodes=6)
    state = GRFMask(num_walks=20, independent_ensembles=True).prepare(Graph.from_data(data))
    following = GRFMask(num_walks=20, independent_ensembles=True, seed=1).prepare(Graph.from_data(data))
    loads = [walks.load.tolist() for walks in (state.query, state.key, following.query, following.key)]
    assert all(loads[i] != loads[j] for i in range(4) for j in range(i))


def test_generator_is_reproducible_and_advances() -> None:
    data, mask = small_graph(), make()
    generator = torch.Generator().manual_seed(7)
    first, second = mask(data, generator).to_dense(), mask(data, generator).to_dense()
    assert not torch.equal(first, second)
    assert torch.equal(first, mask(data, torch.Generator().manual_seed(7)).to_dense())


def test_walks_of_a_generator_do_not_mix_with_those_of_the_seed_on_a_common_graph() -> None:
    graph, mask = Graph.from_data(small_graph()), make(num_walks=8)
    by_seed = mask(graph).to_dense()
    drawn = mask(graph, torch.Generator().manual_seed(1)).to_dense()
    assert not torch.equal(by_seed, drawn)
    assert torch.equal(by_seed, mask(graph).to_dense())


@pytest.mark.parametrize('independent', [False, True])
def test_stored_by_hand_or_walked_now_the_walks_of_a_graph_are_the_same_in_any_batch(independent: bool) -> None:
    mask = GRFMask(num_walks=5, independent_ensembles=independent)
    graphs = uneven_graphs()
    for order in ([0, 1, 2, 3], [3, 2, 1, 0], [2, 2]):
        batch = Batch.from_data_list([graphs[index] for index in order])
        expected = torch.block_diag(*(mask(graphs[index]).to_dense()[0] for index in order))
        torch.testing.assert_close(mask(batch).to_dense()[0], expected, rtol=0, atol=1e-6)


def test_resampling_in_every_forward_pass_of_training_only() -> None:
    data, mask = small_graph(), make(resample='forward', num_walks=8)
    assert not torch.equal(mask(data).to_dense(), mask(data).to_dense())
    mask.eval()
    assert torch.equal(mask(data).to_dense(), mask(data).to_dense())
    assert torch.equal(mask(data).to_dense(), make(num_walks=8)(data).to_dense())


@pytest.mark.parametrize('compose', [lambda mask: mask, lambda mask: mask.T, lambda mask: 2.0 * (mask + PackingMask())])
def test_every_call_draws_anew_on_a_graph_that_is_kept(compose: Callable[[Mask], Mask]) -> None:
    graph, mask = Graph.from_data(small_graph()), compose(make(resample='forward'))
    draws = [mask(graph).to_dense() for _ in range(3)]
    assert not torch.equal(draws[0], draws[1])
    assert not torch.equal(draws[1], draws[2])
    mask.eval()
    assert torch.equal(mask(graph).to_dense(), mask(graph).to_dense())


def test_walks_do_not_depend_on_the_order_of_the_edges() -> None:
    data, other = small_graph(), small_graph()
    other.edge_index = other.edge_index.flip(1)
    assert torch.equal(make()(data).to_dense(), make()(other).to_dense())


def test_resampled_walks_are_shared_on_a_common_graph() -> None:
    graph, first, second = Graph.from_data(small_graph()), make(resample='forward'), make(resample='forward')
    assert torch.equal(first(graph).to_dense(), second(graph).to_dense())


def test_resampling_draws_from_the_global_generator() -> None:
    data, mask = small_graph(), make(resample='forward')
    torch.manual_seed(5)
    first = mask(data).to_dense()
    torch.manual_seed(5)
    assert torch.equal(first, mask(data).to_dense())


def test_gradient_of_the_modulation_through_entries_and_through_products_agree() -> None:
    mask = GRFMask(2, 4, 0.3, 3, independent_ensembles=True).double()
    operator = mask(small_digraph())
    weight = torch.randn(6, 6, dtype=torch.float64)
    (by_products,) = torch.autograd.grad((operator.to_dense() * weight).sum(), mask.modulation)
    entries = operator.entries()
    picked = weight[entries.pattern.row.long(), entries.pattern.col.long()]
    (by_entries,) = torch.autograd.grad((entries.value * picked).sum(), mask.modulation)
    torch.testing.assert_close(by_products, by_entries, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(
    ('argument', 'settings'),
    [
        ('heads', {'heads': 0}),
        ('num_walks', {'num_walks': 0}),
        ('num_walks', {'num_walks': -3}),
        ('p_halt', {'p_halt': 1.0}),
        ('p_halt', {'p_halt': -0.1}),
        ('p_halt', {'p_halt': float('nan')}),
        ('max_walk_length', {'max_walk_length': -1}),
        ('sampler', {'sampler': 'unknown'}),
        ('normalization', {'normalization': 'unknown'}),
        ('resample', {'resample': 'always'}),
        ('modulation', {'modulation': torch.ones(3), 'max_walk_length': 3}),
        ('modulation', {'modulation': torch.ones(3, 4), 'max_walk_length': 3, 'heads': 2}),
    ],
)
def test_bad_arguments_are_named(argument: str, settings: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=f'^{argument}: got'):
        GRFMask(**settings)


@pytest.mark.parametrize('p_halt', [0.0, 0.5])
def test_concentration_bound(p_halt: float) -> None:
    """Theorem 3.2, with c of the corrected Eq. 11, at a deviation where the bound is 0.5."""
    data, walks = small_graph(), 4
    weight = weight_matrix(data, 'sym')
    degree = (weight != 0).sum(1)
    growth = (np.abs(weight) * degree[:, None]).max() / (1 - p_halt)
    c = sum(abs(f) * growth**length for length, f in enumerate(F))
    deviation = np.sqrt(np.log(2 / 0.5) * 2 * (2 * walks - 1) ** 2 * c**4 / walks**3)
    found = samples(make(num_walks=walks, p_halt=p_halt), data, counter=True)[:, ~DIAGONAL]
    assert np.mean(np.abs(found - expected_mask(data)[~DIAGONAL]) > deviation) < 0.5


def as_set(values: Tensor) -> set[float]:
    return set(values.tolist())


def test_sparsity_bound() -> None:
    """Lemma 3.3: at least 1 - delta of the features have at most b n entries beyond the first."""
    walks, p_halt, delta = 4, 0.5, 0.1
    nodes = 2000
    edge_index = torch.stack([torch.arange(nodes), (torch.arange(nodes) + 1) % nodes])
    state = GRFMask(num_walks=walks, p_halt=p_halt, max_walk_length=40).prepare(Graph.from_tensors(edge_index, nodes))
    bound = walks * np.log(1 - (1 - delta) ** (1 / walks)) / np.log(1 - p_halt)
    entries = torch.bincount(state.query.pattern.row, minlength=nodes).numpy()
    assert np.mean(entries <= 1 + bound) >= 1 - delta
    assert as_set(state.query.length) <= set(range(41))


# Asymmetric features --------------------------------------------------------------------------------------------------

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


@pytest.mark.parametrize('name', ONE_HOT)
def test_keys_without_walks_make_the_mask_the_series_itself_also_on_the_diagonal(name: str) -> None:
    """Eq. 27: the expected mask is sum_l f_l W^l, of directed graphs too."""
    graph, settings = ONE_HOT[name]
    data = graph()
    found = scores(make(asymmetric=True, **settings), data, series(data, F, settings.get('normalization', 'sym')), counter=True)
    assert np.abs(found).max() < confidence(COMPARISONS)


def test_drawn_walks_make_the_same_mask_of_keys_without_walks() -> None:
    data = small_digraph()
    found = scores(make(asymmetric=True), data, series(data, F), counter=False)
    assert np.abs(found).max() < confidence(COMPARISONS)


@pytest.mark.parametrize(
    ('graph', 'settings'),
    [
        (small_weighted_graph, {}),
        (small_digraph, {}),
        (small_digraph, {'transition': 'weight', 'walk_length': 'poisson:1.5', 'normalization': 'rw'}),
    ],
    ids=['weighted', 'directed', 'directed_by_weight'],
)
def test_pairs_of_two_ensembles_are_unbiased_everywhere(graph: Callable[[], Data], settings: dict[str, object]) -> None:
    """Eq. 25: (sum_l f1_l W^l) (sum_l f2_l W^l)^T."""
    data = graph()
    normalization = settings.get('normalization', 'sym')
    expected = series(data, F, normalization) @ series(data, F_KEYS, normalization).T
    found = scores(make_pairs(independent_ensembles=True, **settings), data, expected, counter=True)
    assert np.abs(found).max() < confidence(COMPARISONS)


def test_pairs_on_an_undirected_graph_are_the_series_of_the_convolution() -> None:
    """Eq. 26: alpha = f1 * f2."""
    data = small_weighted_graph()
    expected = series(data, np.convolve(F, F_KEYS))
    np.testing.assert_allclose(series(data, F) @ series(data, F_KEYS).T, expected, atol=1e-12)
    found = scores(make_pairs(independent_ensembles=True), data, expected, counter=True)
    assert np.abs(found).max() < confidence(COMPARISONS)


def test_pairs_of_one_ensemble_are_unbiased_off_the_diagonal_only() -> None:
    data = small_digraph()
    found = scores(make_pairs(), data, series(data, F) @ series(data, F_KEYS).T, counter=True)
    assert np.abs(found[~DIAGONAL]).max() < confidence(COMPARISONS)
    assert np.abs(found[DIAGONAL]).max() > confidence(COMPARISONS)


def test_counted_visits_are_expected_with_the_probabilities_of_their_walks() -> None:
    """Eq. 24: sum_l f_l S_l P^l, with P the hops of a simple random walk, whatever the edge weights."""
    data = small_digraph()
    steps = np.zeros((6, 6))
    np.add.at(steps, tuple(data.edge_index.numpy()), 1.0)
    steps /= np.maximum(steps.sum(1, keepdims=True), 1.0)
    expected = power_series(steps, np.array(F) * 0.7 ** np.arange(3))
    found = scores(make(asymmetric=True, importance=False), data, expected, counter=True)
    assert np.abs(found).max() < confidence(COMPARISONS)


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


@pytest.mark.parametrize('asymmetric', [True, 'pairs'])
def test_asymmetric_masks_of_a_batch_are_those_of_its_graphs(asymmetric: bool | str) -> None:
    mask, graphs = make(asymmetric=asymmetric), uneven_graphs()
    for order in ([0, 1, 2, 3], [3, 2, 1, 0]):
        expected = torch.block_diag(*(mask(graphs[index]).to_dense()[0] for index in order))
        found = mask(Batch.from_data_list([graphs[index] for index in order])).to_dense()[0]
        torch.testing.assert_close(found, expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize('independent', [False, True])
def test_gradients_of_both_modulations_through_entries_and_through_products_agree(independent: bool) -> None:
    mask = GRFMask(2, 4, 0.3, 3, asymmetric='pairs', independent_ensembles=independent).double()
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
    'settings', [{'asymmetric': True}, {'asymmetric': 'pairs'}, {'share_modulation': True}, {'positive': True}], ids=str
)
def test_gradients_of_the_parameters(settings: dict[str, object]) -> None:
    mask = GRFMask(2, 4, 0.3, 2, **settings).double()
    graph, names = Graph.from_data(small_digraph()), [name for name, _ in mask.named_parameters()]

    def product(x: Tensor, *parameters: Tensor) -> Tensor:
        return torch.func.functional_call(mask, dict(zip(names, parameters, strict=True)), (graph,)).matmul(x)

    parameters = [parameter.detach().clone().requires_grad_() for parameter in mask.parameters()]
    x = torch.randn(6, 2, 2, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(product, (x, *parameters), atol=1e-6)


# The modulation's parameters ------------------------------------------------------------------------------------------


def heat(time: float, hops: int = 4) -> list[float]:
    return [math.exp(-time) * time**k / math.factorial(k) for k in range(hops + 1)]


@pytest.mark.parametrize(
    ('asymmetric', 'name', 'expected'),
    [
        # exp(-t L) is the square of exp(-t L / 2).
        (False, 'heat', heat(0.5)),
        (False, 'heat:3', heat(1.5)),
        ('pairs', 'heat:3', heat(1.5)),
        (True, 'heat:3', heat(3.0)),
        (False, 'diffusion:2', heat(1.0)),
        (True, 'diffusion:2', heat(2.0)),
        (False, 'random_walk:3', [2.0, 1.0, 0.0, 0.0, 0.0]),
        (True, 'random_walk:3', [4.0, 4.0, 1.0, 0.0, 0.0]),
        (True, 'regularized_laplacian', [0.5, 0.25, 0.125, 0.0625, 0.03125]),
        (True, 'cosine:2', [math.cos(2), math.sin(2) * 2, -math.cos(2) * 2, -math.sin(2) * 8 / 6, math.cos(2) * 16 / 24]),
    ],
)
def test_modulation_by_the_name_of_a_kernel_makes_the_mask_estimate_it(
    asymmetric: bool | str, name: str, expected: list[float]
) -> None:
    mask = GRFMask(2, asymmetric=asymmetric, modulation=name)
    assert mask.modulation.dtype == torch.float32
    np.testing.assert_allclose(mask.f.detach().numpy(), [expected, expected], atol=1e-6)
    if asymmetric == 'pairs':
        np.testing.assert_allclose(mask.key_f.detach().numpy(), [expected, expected], atol=1e-6)
        assert torch.equal(mask.key_f, mask.f)


def test_shared_modulation_is_one_for_all_heads() -> None:
    data = small_graph()
    shared, apart = GRFMask(3, share_modulation=True, asymmetric='pairs'), GRFMask(3, asymmetric='pairs')
    assert shared.modulation.shape == shared.key_modulation.shape == (1, 5)
    assert shared.f.shape == shared.key_f.shape == (3, 5)
    for mask in (shared, apart):
        with torch.no_grad():
            mask.modulation[0] = torch.tensor([0.3, -0.2, 0.9, 0.0, 1.0])
    first, other = shared(data).to_dense(), apart(data).to_dense()
    assert first.shape == (3, 6, 6)
    assert torch.equal(first[0], first[2])
    torch.testing.assert_close(first[0], other[0])
    assert not torch.allclose(other[0], other[2])
    with torch.no_grad():
        apart.modulation.copy_(shared.modulation.expand(3, -1))
    per_head = apart(data).to_dense().square().sum()
    (expected,) = torch.autograd.grad(per_head, apart.modulation)
    (found,) = torch.autograd.grad(first.square().sum(), shared.modulation)
    torch.testing.assert_close(found, expected.sum(0, keepdim=True), rtol=1e-4, atol=1e-4)


def test_shared_modulation_takes_equal_ones_per_head() -> None:
    given = torch.tensor([[1.0, 2.0], [1.0, 2.0]])
    mask = GRFMask(2, max_walk_length=1, modulation=given, share_modulation=True)
    assert mask.modulation.tolist() == [[1.0, 2.0]]
    copied = GRFMask(2, max_walk_length=1, share_modulation=True)
    copied.load_state_dict(mask.state_dict())
    assert copied.f.tolist() == given.tolist()


def test_positive_modulation_starts_as_given_and_stays_positive() -> None:
    given = torch.tensor([[1.0, 0.5, 0.01], [2.0, 3.0, 1e-6]])
    mask = GRFMask(2, 4, 0.3, 2, given, positive=True, asymmetric='pairs')
    torch.testing.assert_close(mask.f, given)
    torch.testing.assert_close(mask.key_f, given)
    optimizer = torch.optim.SGD(mask.parameters(), lr=1.0)
    for _ in range(20):
        optimizer.zero_grad()
        mask(small_graph()).to_dense().sum().backward()
        optimizer.step()
    assert (mask.f > 0).all()
    assert (mask.f < given).all()
    assert (mask(small_graph()).entries().value >= 0).all()
    mask.reset_parameters()
    torch.testing.assert_close(mask.f, given)
    torch.testing.assert_close(mask.key_f, given)


def test_positive_mask_is_the_mask_of_its_modulation() -> None:
    given = torch.tensor([1.0, 0.5, 0.25])
    data = small_digraph()
    torch.testing.assert_close(make(positive=True, modulation=given)(data).to_dense(), make(modulation=given)(data).to_dense())
    by_name = GRFMask(max_walk_length=3, modulation='heat', positive=True)
    np.testing.assert_allclose(by_name.f.detach().numpy(), [heat(0.5, 3)], rtol=1e-5)


@pytest.mark.parametrize(
    ('argument', 'settings'),
    [
        ('asymmetric', {'asymmetric': 'keys'}),
        ('asymmetric', {'asymmetric': 2}),
        ('asymmetric', {'asymmetric': None}),
        ('independent_ensembles', {'asymmetric': True, 'independent_ensembles': True}),
        ('share_modulation', {'heads': 2, 'max_walk_length': 1, 'modulation': torch.eye(2), 'share_modulation': True}),
        ('modulation', {'max_walk_length': 1, 'modulation': torch.tensor([1.0, 0.0]), 'positive': True}),
        ('modulation', {'max_walk_length': 1, 'modulation': torch.tensor([1.0, -2.0]), 'positive': True}),
        ('modulation', {'max_walk_length': 1, 'modulation': torch.tensor([1.0, float('nan')])}),
        ('modulation', {'modulation': 'random_walk', 'positive': True}),
        ('modulation', {'modulation': 'unknown'}),
        ('modulation', {'modulation': 'cosine:2'}),
        ('transition', {'transition': 'unknown'}),
        ('transition', {'transition': 'weight', 'sampler': 'repelling'}),
        ('num_walks', {'num_walks': 3, 'sampler': 'antithetic'}),
        ('walk_length', {'walk_length': 'unknown:2'}),
    ],
)
def test_bad_asymmetric_arguments_are_named(argument: str, settings: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=f'^{argument}: got'):
        GRFMask(**settings)


def test_walks_stored_with_two_ensembles_serve_keys_without_walks() -> None:
    data = AddGraphRandomFeatures(num_walks=4, independent_ensembles=True, seed=3)(small_graph())
    stored = GRFMask(num_walks=4, asymmetric=True)(data).to_dense()
    torch.testing.assert_close(stored, GRFMask(num_walks=4, asymmetric=True, seed=3)(small_graph()).to_dense())
    with pytest.raises(ValueError, match=r'^data: got walks stored with other settings .*importance=False'):
        GRFMask(num_walks=4, asymmetric=True, importance=False)(data)
