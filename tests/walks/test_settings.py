import warnings

import numpy as np
import pytest
import torch
from graphs import small_digraph, small_graph

from pyg_topomask.graphs.edges import FLOWS, NORMALIZATIONS
from pyg_topomask.graphs.graph import Graph
from pyg_topomask.walks import PoissonLength, WalkSettings
from pyg_topomask.walks.steps import SAMPLERS, TRANSITIONS, Transitions
from pyg_topomask.walks.walk import sample_ensembles, sample_walks


def test_unknown_sampler_lists_the_known_ones() -> None:
    with pytest.raises(ValueError) as error:
        WalkSettings(1, 0.5, 2, sampler='unknown')
    assert all(name in str(error.value) for name in SAMPLERS)


def test_settings_that_walk_alike_are_equal() -> None:
    assert WalkSettings(2, 0.5, 2, walk_length='poisson:2') == WalkSettings(2, 0.5, 2, walk_length=PoissonLength(2.0))
    assert len({WalkSettings(2, 0.5, 2), WalkSettings(2, 0.5, 2), WalkSettings(2, 0.5, 3)}) == 2


def test_numbers_of_numpy_become_numbers_of_python() -> None:
    settings = WalkSettings(np.int8(100), np.float32(0.5), np.int8(2))
    assert [type(x) for x in (settings.num_walks, settings.p_halt, settings.max_walk_length)] == [int, float, int]


def test_settings_have_walks_of_their_own_on_one_graph() -> None:
    graph = Graph.from_data(small_digraph())
    for normalization in NORMALIZATIONS:
        for transition in TRANSITIONS:
            for flow in FLOWS:
                settings = WalkSettings(4, 0.3, 3, transition=transition, normalization=normalization, flow=flow)
                actual, expected = (sample_walks(each, settings, 0) for each in (graph, Graph.from_data(small_digraph())))
                torch.testing.assert_close(actual.visits(), expected.visits(), rtol=0, atol=0)


def test_the_largest_random_number_chooses_the_last_edge_of_a_node() -> None:
    transitions = Transitions.of(Graph.from_data(small_graph()), None, 'weight')
    number = torch.full((6,), 1.0 - 2.0**-53, dtype=torch.float64)
    chosen = transitions.choose(torch.arange(6), number)  # which is rounded up to the next node
    torch.testing.assert_close(chosen, transitions.first.sum(1) - 1, check_dtype=False)


@pytest.mark.parametrize('length', ['fixed:2', 'survival:1,0.7,0.3', 'survival:1,0.7,0.3,0'])
def test_powers_beyond_the_longest_walk_warn(length: str) -> None:
    with pytest.warns(UserWarning, match='^max_walk_length is 5, but no walk of .* more than 2 hops'):
        WalkSettings(2, 0.5, 5, walk_length=length)
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        WalkSettings(2, 0.5, 2, walk_length=length)
        WalkSettings(2, 0.5, 5, walk_length=length, importance=False)
        WalkSettings(2, 0.5, 5, walk_length='poisson:2')


def test_one_ensemble_is_one_object_and_two_differ() -> None:
    graph = Graph.from_data(small_graph())
    query, key = sample_ensembles(graph, WalkSettings(4, 0.5, 3), 0)
    assert query is key
    settings = WalkSettings(4, 0.5, 3, independent_ensembles=True)
    query, key = sample_ensembles(graph, settings, None, torch.Generator().manual_seed(0))
    assert query.load.tolist() != key.load.tolist()
