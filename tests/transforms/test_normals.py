from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.utils.data import IterDataPipe
from torch_geometric.data import Batch, Data, HeteroData

from pyg_topomask.transforms.geometry import AddNormals


def sphere(size: int = 400, seed: int = 0) -> torch.Tensor:
    pos = torch.randn(size, 3, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return pos / pos.norm(dim=1, keepdim=True)


def test_normals_are_the_smallest_axes_of_the_neighbors() -> None:
    pos = torch.rand(60, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    normal = AddNormals(k=9)(Data(pos=pos)).normal.numpy()
    points = pos.numpy()
    for point, point_normal in zip(points, normal, strict=True):
        nearest = points[np.argsort(np.linalg.norm(points - point, axis=1))[:9]]
        _, _, axes = np.linalg.svd(nearest - nearest.mean(0))
        assert abs(axes[-1] @ point_normal) == pytest.approx(1)
        assert (point - points.mean(0)) @ point_normal >= 0


def test_normals_of_a_sphere_point_outward() -> None:
    pos = sphere(2000)
    normal = AddNormals(k=12)(Data(pos=pos + 5)).normal
    assert (normal * pos).sum(1).min() > 0.95


def test_orientation_up_and_dtype() -> None:
    normal = AddNormals(orient='up')(Data(pos=sphere().float())).normal
    assert normal.dtype == torch.float32
    assert (normal[:, 2] >= 0).all()
    torch.testing.assert_close(normal.norm(dim=1), torch.ones(400))


def test_rotations_turn_the_normals() -> None:
    turn, _ = torch.linalg.qr(torch.randn(3, 3, dtype=torch.float64))
    torch.testing.assert_close(AddNormals()(Data(pos=sphere() @ turn)).normal, AddNormals()(Data(pos=sphere())).normal @ turn)


def test_in_the_plane() -> None:
    angle = torch.linspace(0, 6, 100, dtype=torch.float64)
    pos = torch.stack([angle.cos(), angle.sin()], dim=1)
    normal = AddNormals(k=5)(Data(pos=pos)).normal
    assert (normal * pos).sum(1).abs()[5:-5].min() > 0.999


def test_a_narrow_strip_is_no_line() -> None:
    pos = torch.rand(20, 3, dtype=torch.float64) * torch.tensor([1.0, 1e-3, 0.0])
    torch.testing.assert_close(AddNormals(k=20, orient='up')(Data(pos=pos)).normal, torch.eye(3).double()[[2] * 20])


def test_a_batch_is_one_by_one() -> None:
    graphs = [Data(pos=pos) for pos in (sphere(30), sphere(1, 1), sphere(0, 2), sphere(2, 3), sphere(80, 4) + 7)]
    batch = AddNormals(k=6)(Batch.from_data_list(graphs))
    torch.testing.assert_close(batch.normal, torch.cat([AddNormals(k=6)(data).normal for data in graphs]))


def test_points_on_a_line_have_none(subtests: pytest.Subtests) -> None:
    for pos in [
        torch.zeros(0, 3),
        torch.zeros(1, 3),
        torch.zeros(7, 3),
        torch.arange(8.0).view(-1, 1) * torch.ones(1, 3),
        torch.tensor([[0.0, 1.0, 2.0], [1.0, 5.0, 2.0]]),
    ]:
        with subtests.test(pos=pos):
            normal = AddNormals()(Data(pos=pos)).normal
            assert normal.shape == pos.shape
            assert not normal.any()


def test_appending_to_x() -> None:
    pos = sphere().float()
    data = AddNormals(cat=True)(Data(pos=pos, x=torch.ones(400, 2)))
    torch.testing.assert_close(data.x, torch.cat([torch.ones(400, 2), data.normal], dim=1))
    for each in (pos, pos.double()):
        torch.testing.assert_close(AddNormals(cat=True)(Data(pos=each)).x, torch.cat([each, data.normal.to(each.dtype)], dim=1))


@pytest.mark.parametrize('dtype', [torch.uint8, torch.int64, torch.bool, torch.float16])
def test_normals_beside_features_of_any_type(dtype: torch.dtype) -> None:
    pos, x = sphere(40).float(), torch.ones(40, 2, dtype=dtype)
    data = AddNormals(cat=True)(Data(pos=pos, x=x))
    expected = torch.float16 if dtype == torch.float16 else torch.float32
    torch.testing.assert_close(data.x, torch.cat([x.to(expected), data.normal.to(expected)], dim=1))


def test_functional_name_and_repr() -> None:
    assert 'add_normals' in IterDataPipe.functions
    assert repr(AddNormals(8)) == "AddNormals(k=8, orient='outward', cat=False)"


def test_bad_input_is_named(subtests: pytest.Subtests) -> None:
    for argument, call in [
        ('k', lambda: AddNormals(2)),
        ('orient', lambda: AddNormals(orient='down')),
        ('cat', lambda: AddNormals(cat='no')),
        ('data', lambda: AddNormals()(HeteroData())),
        ('data', lambda: AddNormals()(Data(x=torch.ones(2, 1)))),
        ('data', lambda: AddNormals()(Data(pos=torch.ones(2, 1)))),
        ('pos', lambda: AddNormals()(Data(pos=torch.full((2, 3), torch.nan)))),
    ]:
        with subtests.test(argument=argument), pytest.raises(ValueError, match=f'^{argument}: got'):
            call()


def test_features_of_no_points_and_normals_have_their_columns() -> None:
    data = AddNormals(cat=True)(Data(pos=torch.empty(0, 3), x=torch.empty(0, 2)))
    assert data.x.shape == (0, 5)
