import numpy as np
import pytest
import torch
from graphs import ring
from torch.utils.data import IterDataPipe
from torch_geometric.data import Batch, Data, HeteroData

from pyg_topomask.transforms.geometry import AddGridShape, ToGridGraph


def test_grid_of_pixels(subtests: pytest.Subtests) -> None:
    for shape in [(7,), (3, 4), (2, 3, 4), (1, 1), (1, 5), (3, 1, 2), (0, 3)]:
        with subtests.test(shape=shape):
            image = torch.rand(2, *shape)
            given = image.movedim(0, 1) if len(shape) == 3 else image
            data = ToGridGraph()(given)
            points = list(np.ndindex(*shape))
            assert data.grid_shape.tolist() == [list(shape)]
            assert data.pos.tolist() == [list(map(float, point)) for point in points]
            for node, point in enumerate(points):
                assert torch.equal(data.x[node], image[(slice(None), *point)])
            expected = [
                [i, j]
                for i, p in enumerate(points)
                for j, q in enumerate(points)
                if sum(abs(a - b) for a, b in zip(p, q, strict=True)) == 1
            ]
            assert data.edge_index.t().tolist() == expected
            assert data.num_nodes == len(points)


def test_positions_have_the_default_data_type() -> None:
    torch.set_default_dtype(torch.float64)
    try:
        assert ToGridGraph()(torch.rand(1, 2, 3).float()).pos.dtype == torch.float64
    finally:
        torch.set_default_dtype(torch.float32)


def test_shapes_are_batched() -> None:
    graphs = [ToGridGraph()(torch.rand(3, 2, 2)), AddGridShape((1, 3))(Data(num_nodes=3)), ToGridGraph()(torch.rand(1, 2, 5))]
    batch = Batch.from_data_list([Data(num_nodes=g.num_nodes, grid_shape=g.grid_shape) for g in graphs])
    assert batch.grid_shape.tolist() == [[2, 2], [1, 3], [2, 5]]
    assert batch.num_nodes == 17
    assert batch[2].grid_shape.tolist() == [[2, 5]]


def test_shape_is_added_to_a_copy() -> None:
    data = Data(edge_index=ring(6), num_nodes=6)
    assert AddGridShape([2, 3])(data).grid_shape.tolist() == [[2, 3]]
    assert 'grid_shape' not in data


def test_functional_names_and_repr() -> None:
    assert {'add_grid_shape', 'to_grid_graph'} <= set(IterDataPipe.functions)
    assert repr(AddGridShape((2, 3))) == 'AddGridShape(shape=(2, 3))'
    assert repr(ToGridGraph()) == 'ToGridGraph()'


def test_bad_shapes_are_named(subtests: pytest.Subtests) -> None:
    for shape in [(), (-1, -6), 5, (2.0, 3), '23', None]:
        with subtests.test(shape=shape), pytest.raises(ValueError, match=r'^shape: got'):
            AddGridShape(shape)


def test_bad_data_is_named() -> None:
    with pytest.raises(ValueError, match=r'^shape: got \(2, 4\), a grid of 8 nodes, for data of 6 nodes'):
        AddGridShape((2, 4))(Data(num_nodes=6))
    with pytest.raises(ValueError, match=r'^data: got HeteroData'):
        AddGridShape((2,))(HeteroData())
    with pytest.raises(ValueError, match=r'^data: got a batch'):
        AddGridShape((2,))(Batch.from_data_list([Data(num_nodes=1)] * 2))
    for wrong in (torch.rand(3), torch.rand(1, 1, 1, 1, 1)):
        with pytest.raises(ValueError, match=r'^data: got shape'):
            ToGridGraph()(wrong)
    with pytest.raises(ValueError, match=r'^data: got Data'):
        ToGridGraph()(Data(num_nodes=2))


def test_image_without_channels_or_pixels() -> None:
    assert ToGridGraph()(torch.empty(0, 2, 3)).x.shape == (6, 0)
    assert ToGridGraph()(torch.empty(0, 0, 3)).x.shape == (0, 0)
