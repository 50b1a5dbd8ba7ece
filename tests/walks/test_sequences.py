"""Walks node by node are those of the features, with the loads of their equation."""

from itertools import pairwise

import numpy as np
import pytest
import torch
from graphs import GRAPH_NAMES, GRAPHS, small_weighted_graph, uneven_graphs
from oracles import as_numpy, weight_matrix
from sampled_features import load_matrices
from torch_geometric.data import Batch

from pyg_topomask.graphs.graph import Graph
from pyg_topomask.masks import GRFMask
from pyg_topomask.walks import WalkSettings, sample_random_walks, sample_walks


@pytest.mark.parametrize('sampler', ['iid', 'repelling_coupled'])
@pytest.mark.parametrize('name', GRAPH_NAMES)
def test_features_are_means_of_loads(name: str, sampler: str) -> None:
    graph = Graph.from_data(GRAPHS[name]())
    settings = WalkSettings(4, 0.3, 3, sampler=sampler)
    nodes, load = (value.numpy() for value in sample_random_walks(graph, settings, seed=3))
    expected = np.zeros((4, graph.num_nodes, graph.num_nodes))
    for start, walk, step in zip(*np.nonzero(nodes >= 0), strict=True):
        expected[step, start, nodes[start, walk, step]] += load[start, walk, step] / 4
    np.testing.assert_allclose(load_matrices(sample_walks(graph, settings, 3)), expected, atol=1e-6)


def test_loads_are_products_over_the_edges_crossed() -> None:
    data = small_weighted_graph()  # without parallel edges
    matrix = weight_matrix(data, 'sym')
    degree = np.bincount(as_numpy(data)[0][0], minlength=data.num_nodes)
    nodes, load = (value.numpy() for value in sample_random_walks(Graph.from_data(data), WalkSettings(2, 0.3, 3), seed=1))
    for walk, loads in zip(nodes.reshape(-1, 4), load.reshape(-1, 4), strict=True):
        expected = 1.0
        for hops, (before, after) in enumerate(pairwise(walk[walk >= 0]), start=1):
            expected *= matrix[before, after] * degree[before] / 0.7
            np.testing.assert_allclose(loads[hops], expected, rtol=1e-5)
        assert (loads[walk < 0] == 0).all()
        assert (np.diff((walk < 0).astype(int)) >= 0).all()  # nothing after the end


def test_a_batch_is_one_by_one_and_a_mask_has_these_walks() -> None:
    datas, settings = uneven_graphs(), GRFMask(num_walks=3).walk_settings
    together = sample_random_walks(Graph.from_data(Batch.from_data_list(datas)), settings, seed=2)
    first = 0
    for data in datas:
        alone = sample_random_walks(data, settings, seed=2)
        part = slice(first, first + data.num_nodes)
        assert torch.equal(together.nodes[part], torch.where(alone.nodes < 0, -1, alone.nodes + first))
        torch.testing.assert_close(together.load[part], alone.load)
        first += data.num_nodes
    graph = Graph.from_data(datas[2])
    nodes, load = sample_random_walks(graph, settings, seed=2)
    steps = load_matrices(GRFMask(num_walks=3, seed=1).prepare(graph).query)[1]
    expected = np.zeros_like(steps)
    rows = np.arange(graph.num_nodes).repeat(3)[nodes[..., 1].flatten() >= 0]
    np.add.at(expected, (rows, nodes[..., 1][nodes[..., 1] >= 0].numpy()), load[..., 1][nodes[..., 1] >= 0].numpy() / 3)
    np.testing.assert_allclose(steps, expected, atol=1e-6)
