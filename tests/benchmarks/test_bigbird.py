"""The pattern of BigBird: neighbors in the order of nodes, the ends of a graph, a few random nodes, and no other graph."""

import numpy as np
import torch
from graphs import uneven_graphs
from torch_geometric.data import Batch, Data

from benchmarks.bigbird import BigBirdMask
from pyg_topomask.testing import assert_mask_operator


def test_it_is_a_mask():
    assert_mask_operator(BigBirdMask(window=1, ends=1, degree=2), Batch.from_data_list(uneven_graphs()))


def test_near_nodes_and_ends():
    size, window, ends, degree = 60, 2, 3, 4
    matrix = BigBirdMask(window, ends, degree)(Data(num_nodes=size)).to_dense()[0].numpy()
    assert np.isin(matrix, (0, 1)).all()
    place = np.arange(size)
    near = np.abs(place[:, None] - place) <= window
    end = (place < ends) | (place >= size - ends)
    assert (matrix[near | end | end[:, None]] == 1).all()
    random_entries = matrix[~(near | end | end[:, None])]
    assert 0 < random_entries.sum() <= degree * size


def test_small_graphs_attend_to_all():
    assert torch.equal(BigBirdMask()(Data(num_nodes=5)).to_dense(), torch.ones(1, 5, 5))
