import warnings

import pytest
import torch
from graphs import small_graph

from pyg_topomask.graphs.graph import Graph
from pyg_topomask.walks import PoissonLength, WalkSettings
from pyg_topomask.walks.steps import SAMPLERS
from pyg_topomask.walks.walk import sample_ensembles


def test_unknown_sampler_lists_the_known_ones() -> None:
    with pytest.raises(ValueError) as error:
        WalkSettings(1, 0.5, 2, sampler='unknown')
    assert all(name in str(error.value) for name in SAMPLERS)


def test_settings_that_walk_alike_are_equal() -> None:
    assert WalkSettings(2, 0.5, 2, walk_length='poisson:2') == WalkSettings(2, 0.5, 2, walk_length=PoissonLength(2.0))
    assert len({WalkSettings(2, 0.5, 2), WalkSettings(2, 0.5, 2), WalkSettings(2, 0.5, 3)}) == 2


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
