import copy
from collections.abc import Callable

import numpy as np
import pytest
import torch
from graphs import GRAPHS, small_digraph, small_graph, small_weighted_graph
from grf_samples import COMPARISONS, DIAGONAL, F, expected_mask, make, scores
from grids import at_night
from oracles import confidence
from torch_geometric.data import Data

from pyg_topomask.graphs.graph import Graph
from pyg_topomask.masks import GRFMask, Mask, PackingMask

SETTINGS = {
    'undirected': (small_graph, {}),
    'weighted': (small_weighted_graph, {}),
    'directed': (small_digraph, {}),
    'directed_rw': (small_digraph, {'normalization': 'rw'}),
    'along_edges': (small_digraph, {'flow': 'target_to_source'}),
    'unnormalized': (small_graph, {'normalization': None}),
    'fixed_length': (small_graph, {'p_halt': 0.0}),
    'one_walk': (small_graph, {'num_walks': 1}),
}
LESS_DIFFERENT = [
    *((name, True) for name in sorted(set(SETTINGS) - {'weighted', 'along_edges'})),
    ('weighted', False),
    ('fixed_length', False),
]


@pytest.mark.parametrize(
    ('name', 'counter'), [('weighted', True), ('along_edges', True), *(at_night(*case) for case in LESS_DIFFERENT)]
)
def test_two_ensembles_are_unbiased_everywhere(name: str, counter: bool) -> None:
    graph, settings = SETTINGS[name]
    data = graph()
    z_scores = scores(make(independent_ensembles=True, **settings), data, expected_mask(data, **settings), counter)
    assert np.abs(z_scores).max() < confidence(COMPARISONS)


@pytest.mark.parametrize(
    ('name', 'counter'),
    [('along_edges', True), *(at_night(name, False) for name in ('undirected', 'along_edges', 'fixed_length'))],
)
def test_one_ensemble_is_unbiased_off_the_diagonal_and_biased_upwards_on_it(name: str, counter: bool) -> None:
    graph, settings = SETTINGS[name]
    data = graph()
    z_scores = scores(make(**settings), data, expected_mask(data, **settings), counter)
    assert np.abs(z_scores[~DIAGONAL]).max() < confidence(COMPARISONS)
    walks = np.array([name != 'along_edges' or node != 5 for node in range(6)])  # a dead end has no variance, hence no bias
    assert z_scores[DIAGONAL][walks].min() > confidence(COMPARISONS)


def test_heads_share_the_walks_and_differ_in_the_modulation() -> None:
    modulation = torch.tensor([F, [0.5, 0.0, 1.0]])
    both = GRFMask(2, 3, 0.3, 2, modulation)(small_graph()).to_dense()
    for head in range(2):
        torch.testing.assert_close(both[head], GRFMask(1, 3, 0.3, 2, modulation[head])(small_graph()).to_dense()[0])


def test_modulation_starts_as_given_and_resets_to_it() -> None:
    mask = GRFMask(2, max_walk_length=2, modulation=torch.tensor(F), positive=False)
    assert mask.modulation.tolist() == torch.tensor([F, F]).tolist()
    with torch.no_grad():
        mask.modulation.zero_()
    mask.reset_parameters()
    assert mask.modulation.tolist() == torch.tensor([F, F]).tolist()
    torch.testing.assert_close(GRFMask(max_walk_length=2).f, torch.tensor([[1.0, 0.5, 0.25]]))


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


def test_resampled_walks_are_shared_on_a_common_graph() -> None:
    graph, first, second = Graph.from_data(small_graph()), make(resample='forward'), make(resample='forward')
    assert torch.equal(first(graph).to_dense(), second(graph).to_dense())


@pytest.mark.parametrize('compose', [lambda mask: mask - mask, lambda mask: mask - mask.T, lambda mask: mask.T.T - 1.0 * mask])
def test_a_mask_that_comes_twice_in_a_composition_is_drawn_once(compose: Callable[[Mask], Mask]) -> None:
    graph, mask = Graph.from_data(small_graph()), compose(make(resample='forward', num_walks=3))
    for _ in range(2):  # symmetric, and so its own transpose
        assert not mask(graph).to_dense().any()


@pytest.mark.parametrize('resample', ['never', 'forward'])
def test_different_masks_of_a_composition_are_drawn_apart(resample: str) -> None:
    first, second = (
        GRFMask(1, 2, 0.5, length, modulation=torch.tensor([1.0, 1.0, 0.0][: length + 1]), resample=resample)
        for length in (1, 2)
    )
    # Equal walks, of which the longer have no say, would leave nothing.
    assert bool((first - second)(small_graph()).to_dense().any()) == (resample == 'forward')


def test_resampling_draws_from_the_global_generator() -> None:
    data, mask = small_graph(), make(resample='forward')
    torch.manual_seed(5)
    first = mask(data).to_dense()
    torch.manual_seed(5)
    assert torch.equal(first, mask(data).to_dense())
