from typing import Any

import pytest
import torch
from graphs import small_graph

from pyg_topomask.graph import Graph
from pyg_topomask.graphgym.composed_mask import build_mask
from pyg_topomask.masks import AdjacencyMask, GRFMask, LearnedFeaturesMask, PowerSeriesMask

GRAPH = Graph.from_data(small_graph())


def dense(tree: Any) -> torch.Tensor:
    torch.manual_seed(0)
    return build_mask(tree, 2)(GRAPH).to_dense()


def test_names_and_arguments() -> None:
    torch.testing.assert_close(dense('Adjacency'), AdjacencyMask(2)(GRAPH).to_dense())
    torch.testing.assert_close(dense({'GRF': {'num_walks': 8}}), GRFMask(2, 8)(GRAPH).to_dense())
    torch.testing.assert_close(dense({'PowerSeries': None}), PowerSeriesMask(2)(GRAPH).to_dense())


def test_compositions() -> None:
    adjacency, series = AdjacencyMask(2)(GRAPH).to_dense(), GRFMask(2, asymmetric=True)(GRAPH).to_dense()
    walks = {'GRF': {'asymmetric': True}}
    torch.testing.assert_close(dense({'sum': ['Adjacency', walks, 'Packing']}), adjacency + series + 1)
    torch.testing.assert_close(dense({'transpose': walks}), series.transpose(1, 2))
    torch.testing.assert_close(dense({'scale': [-2, {'transpose': walks}]}), -2 * series.transpose(1, 2))
    torch.testing.assert_close(dense({'heads': ['Adjacency', walks]}), torch.stack([adjacency[0], series[0]]))
    torch.manual_seed(0)
    learned = LearnedFeaturesMask(2, 6, 1)(GRAPH).to_dense()
    torch.testing.assert_close(dense({'hadamard': [walks, {'LearnedFeatures': {'num_nodes': 6, 'rank': 1}}]}), series * learned)


@pytest.mark.parametrize(
    ('tree', 'message'),
    [
        ({}, 'topomask.mask: got {}'),
        (3, 'topomask.mask: got 3'),
        ({'GRF': {}, 'Packing': {}}, 'topomask.mask: got'),
        ({'sum': ['GRF']}, 'topomask.mask: got sum'),
        ({'hadamard': 'GRF'}, 'topomask.mask: got hadamard'),
        ({'heads': ['GRF']}, 'topomask.mask: got heads'),
        ({'heads': ['GRF', 'Packing', 'Causal']}, 'topomask.mask: got 3 masks for 2 heads'),
        ({'scale': ['GRF', 2.0]}, 'topomask.mask: got scale'),
        ({'scale': [float('nan'), 'GRF']}, 'topomask.mask: got scale'),
        ('Unknown', 'Unknown'),
        ({'GRF': {'walks': 3}}, r"topomask.mask: got \{'walks': 3\} for GRF; accepted are the arguments \['num_walks'"),
    ],
)
def test_bad_trees_are_refused(tree: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        build_mask(tree, 2)
