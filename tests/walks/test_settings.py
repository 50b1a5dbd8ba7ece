import pytest
import torch
from graphs import small_graph

from pyg_topomask.graph import Graph
from pyg_topomask.walks import SAMPLERS, WalkSettings


@pytest.mark.parametrize(
    ('name', 'arguments'),
    [
        ('num_walks', (0, 0.5, 2)),
        ('p_halt', (1, 1.0, 2)),
        ('p_halt', (1, float('nan'), 2)),
        ('max_walk_length', (1, 0.5, -1)),
        ('sampler', (1, 0.5, 2, False, 'unknown')),
        ('normalization', (1, 0.5, 2, False, 'iid', 'unknown')),
    ],
)
def test_bad_arguments_are_named(name: str, arguments: tuple[object, ...]) -> None:
    with pytest.raises(ValueError, match=f'^{name}: got'):
        WalkSettings(*arguments)


def test_unknown_sampler_lists_the_known_ones() -> None:
    with pytest.raises(ValueError) as error:
        WalkSettings(1, 0.5, 2, sampler='unknown')
    assert all(name in str(error.value) for name in SAMPLERS)


def test_one_ensemble_is_one_object_and_two_differ() -> None:
    graph = Graph.from_data(small_graph())
    query, key = WalkSettings(4, 0.5, 3).sample(graph, 0)
    assert query is key
    query, key = WalkSettings(4, 0.5, 3, independent_ensembles=True).sample(graph, None, torch.Generator().manual_seed(0))
    assert query.load.tolist() != key.load.tolist()
