from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import IterDataPipe
from torch_geometric.data import Batch, Data, HeteroData

from pyg_topomask.transforms.geometry import FarthestSampling, RandomSampling, farthest_points

SAMPLINGS = [RandomSampling, FarthestSampling]


def cloud(size: int = 50) -> Data:
    generator = torch.Generator().manual_seed(size)
    pos = torch.rand(size, 3, generator=generator)
    edge_index = torch.randint(size, (2, 3 * size), generator=generator)
    return Data(
        pos=pos, y=torch.arange(size), edge_index=edge_index, edge_attr=edge_index.t().clone(), shape_class=torch.tensor([3])
    )


@pytest.mark.parametrize('dimension', [1, 2, 3])
def test_each_point_is_the_farthest_from_those_before(dimension: int) -> None:
    pos = torch.rand(40, dimension, dtype=torch.float64)
    chosen = farthest_points(pos, 15, start=7).numpy()
    assert chosen[0] == 7
    distance = np.linalg.norm(pos[:, None].numpy() - pos[None].numpy(), axis=2)
    for place in range(1, 15):
        nearest = distance[chosen[:place]].min(0)
        assert nearest[chosen[place]] == nearest.max()


def test_coinciding_points_are_taken_once() -> None:
    assert farthest_points(torch.zeros(5, 3), 4).sort().values.unique().numel() == 4
    assert farthest_points(torch.zeros(5, 3), 9).sort().values.tolist() == [0, 1, 2, 3, 4]
    assert farthest_points(torch.zeros(0, 3), 3).tolist() == []


@pytest.mark.parametrize('sampling', SAMPLINGS)
def test_what_belongs_to_the_nodes_and_edges_stays_with_them(sampling: Any) -> None:
    data = cloud()
    out = sampling(20)(data)
    assert out.num_nodes == 20
    assert torch.equal(out.pos, data.pos[out.y])
    assert (out.y.diff() > 0).all()
    assert torch.equal(out.y[out.edge_index].t(), out.edge_attr)
    kept = set(out.y.tolist())
    assert out.num_edges == sum(i in kept and j in kept for i, j in data.edge_index.t().tolist()) > 0
    assert out.shape_class.tolist() == [3]
    assert data.num_nodes == 50


@pytest.mark.parametrize('sampling', SAMPLINGS)
def test_sparse_edges_are_refused(sampling: Any) -> None:
    data = Data(pos=torch.rand(4, 3), adj_t=torch.eye(4).to_sparse())
    with pytest.raises(ValueError, match=r'^data: got data with adj_t; accepted: data with edge_index'):
        sampling(2)(data)


@pytest.mark.parametrize('sampling', SAMPLINGS)
def test_pairs_of_nodes_are_refused(sampling: Any) -> None:
    data = Data(pos=torch.rand(4, 3), edge_label_index=torch.tensor([[0], [3]]))
    with pytest.raises(ValueError, match=r'^data: got data with edge_label_index; .*; apply RandomLinkSplit afterwards'):
        sampling(2)(data)


@pytest.mark.parametrize('sampling', SAMPLINGS)
def test_seeds(sampling: Any) -> None:
    state = torch.get_rng_state()
    first, again, other_seed = (sampling(10, seed=seed)(cloud()).y.tolist() for seed in (1, 1, 2))
    assert first == again != other_seed
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize('sampling', SAMPLINGS)
@pytest.mark.parametrize('size', [0, 1, 10])
def test_clouds_of_fewer_points_are_kept_whole(size: int, sampling: Any) -> None:
    data = Data(pos=torch.rand(size, 3), y=torch.arange(size), face=torch.zeros(3, 1, dtype=torch.long))
    out = sampling(10)(data)
    assert torch.equal(out.pos, data.pos)
    assert torch.equal(out.face, data.face)


def test_random_sampling_needs_no_positions() -> None:
    assert RandomSampling(3)(Data(x=torch.rand(9, 2))).x.shape == (3, 2)


def test_distances_in_half_precision_do_not_overflow() -> None:
    pos = torch.tensor([[0.0], [400.0], [1000.0], [300.0]], dtype=torch.float16)
    assert farthest_points(pos, 3).tolist() == [0, 2, 1]


def test_functional_names_and_repr() -> None:
    assert {'topo_random_sampling', 'topo_farthest_sampling'} <= set(IterDataPipe.functions)
    assert repr(FarthestSampling(4)) == 'FarthestSampling(num=4, seed=0)'


def test_bad_input_is_named(subtests: pytest.Subtests) -> None:
    for argument, call in [
        ('num', lambda: RandomSampling(0)),
        ('num', lambda: FarthestSampling(-1)),
        ('num', lambda: farthest_points(torch.rand(3, 3), 0)),
        ('start', lambda: farthest_points(torch.rand(3, 3), 2, start=3)),
        ('pos', lambda: farthest_points(torch.tensor([[torch.nan], [0.0]]), 1)),
        ('pos', lambda: farthest_points(torch.zeros(4), 1)),
        ('pos', lambda: farthest_points(torch.zeros(4, 0), 1)),
        ('pos', lambda: farthest_points(torch.full((4, 3), 3e38), 1)),
        ('pos', lambda: FarthestSampling(1)(Data(pos=torch.full((2, 3), torch.inf)))),
        ('data', lambda: FarthestSampling(1)(Data(x=torch.rand(2, 1)))),
        ('data', lambda: RandomSampling(1)(HeteroData())),
        ('data', lambda: RandomSampling(1)(Batch.from_data_list([cloud(), cloud()]))),
    ]:
        with subtests.test(argument=argument), pytest.raises(ValueError, match=f'^{argument}: got'):
            call()


@pytest.mark.parametrize('sampling', SAMPLINGS)
def test_faces_are_removed(sampling: Any) -> None:
    data = cloud(6)
    data.face = torch.tensor([[0, 1], [1, 2], [5, 5]])
    out = sampling(3)(data)
    assert 'face' not in out
    assert 'face' in data
    assert out.num_nodes == 3
