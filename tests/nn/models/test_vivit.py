import pytest
import torch
from torch import Tensor

from pyg_topomask.masks import GRFMask, Mask
from pyg_topomask.nn.models import ViViT

HEADS = 2


def grf(layer: int) -> Mask:
    return GRFMask(HEADS, num_walks=8, seed=layer, positive=True)


def model(**settings: object) -> ViViT:
    arguments = {'image_size': (4, 6), 'patch_size': 2, 'num_frames': 6, 'tubelet_frames': 2, 'in_channels': 3}
    arguments |= {'num_classes': 5, 'channels': 8, 'depth': 2, 'temporal_depth': 1, 'heads': HEADS, 'mlp_channels': 16}
    return ViViT(**(arguments | settings))


def videos(count: int = 4) -> Tensor:
    return torch.rand(count, 6, 3, 4, 6, generator=torch.Generator().manual_seed(1))


def test_model_is_a_spatial_then_a_temporal_encoder() -> None:
    vivit, x = model(mask=grf), videos()
    kernel = vivit.embedding.conv.weight.unflatten(1, (2, 3))
    per_index = []
    for index in range(3):
        tubelets = torch.stack([
            x[:, 2 * index : 2 * index + 2, :, row : row + 2, column : column + 2]
            for row in (0, 2)
            for column in (0, 2, 4)
        ], dim=1)  # fmt: skip
        tokens = torch.einsum('bntcxy,ktcxy->bnk', tubelets, kernel) + vivit.embedding.conv.bias
        per_index.append(vivit.spatial(tokens))
    expected = vivit.head(vivit.temporal(torch.stack(per_index, dim=1)))
    torch.testing.assert_close(vivit(x), expected, rtol=1e-4, atol=1e-6)


def test_spatial_and_temporal_layers() -> None:
    vivit = model(mask=grf)
    assert [type(block.attention.mask) for block in vivit.spatial.blocks] == [GRFMask, GRFMask]
    assert [block.attention.mask for block in vivit.temporal.blocks] == [None]
    edges = vivit.spatial.graph(1).edge_index  # of 2 rows of 3 patches
    assert edges[1, edges[0] == 0].sort().values.tolist() == [1, 3]
    assert vivit.spatial.position.shape == (6, 8)
    assert vivit.temporal.position.shape == (3, 8)


@pytest.mark.parametrize('attention', ['softmax', 'linear'])
@pytest.mark.parametrize('mask', [None, grf])
def test_gradients_reach_every_parameter(mask: object, attention: str) -> None:
    vivit = model(mask=mask, attention=attention, feature_map='elu')
    vivit(videos()).square().sum().backward()
    for name, parameter in vivit.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.any(), name


def test_order_of_the_frames_matters() -> None:
    vivit = model()
    assert not torch.allclose(vivit(videos()), vivit(videos().flip(1)))


@pytest.mark.parametrize(
    ('arguments', 'message'),
    [
        ({'tubelet_frames': 4}, 'tubelet_frames: got 4 for num_frames=6; accepted: numbers that divide the frames'),
        ({'tubelet_frames': 0}, 'tubelet_frames: got 0'),
        ({'temporal_depth': 0}, '^temporal_depth: got 0'),
        ({'num_classes': 0}, 'num_classes: got 0'),
        ({'patch_size': 4}, 'patch_size: got 4'),
    ],
)
def test_bad_arguments(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        model(**arguments)


@pytest.mark.parametrize('shape', [(4, 5, 3, 4, 6), (4, 6, 1, 4, 6), (6, 3, 4, 6)])
def test_bad_videos(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r'videos: got shape .*; accepted: \[B, 6, 3, 4, 6\]'):
        model()(torch.rand(shape))


def test_videos_of_another_data_type() -> None:
    with pytest.raises(ValueError, match=r'^videos: got torch.uint8; accepted: torch.float32, the data type of the parameters'):
        model()(torch.rand(4, 6, 3, 4, 6).byte())
