import copy
import pickle
from functools import partial

import pytest
import torch
from grids import covering
from torch import Tensor

from pyg_topomask import Graph
from pyg_topomask.feature_maps import FavorFeatures
from pyg_topomask.feature_maps.names import FEATURE_MAPS
from pyg_topomask.masks import AdjacencyMask, GRFMask, LowRankMask, PackingMask, ToeplitzMask
from pyg_topomask.nn.models import TopologicalViT

HEADS, CHANNELS = 2, 8

MASKS = {
    'none': lambda layer: None,
    'adjacency': lambda layer: AdjacencyMask(HEADS, normalization='sym'),
    'shared': lambda layer: AdjacencyMask(),
    'asymmetric': lambda layer: AdjacencyMask(HEADS, normalization='rw'),
    'grf': lambda layer: GRFMask(HEADS, num_walks=8, seed=layer),
    'positive': lambda layer: GRFMask(HEADS, num_walks=8, seed=layer, positive=True),
    'toeplitz': lambda layer: ToeplitzMask(HEADS, window=2, positive=True),
    'sum': lambda layer: GRFMask(HEADS, seed=layer) + 0.1 * PackingMask(),
    'scaled': lambda layer: AdjacencyMask(HEADS) * torch.nn.Parameter(torch.ones(HEADS)),
}


def model(mask: str = 'grf', **settings: object) -> TopologicalViT:
    arguments = {'attention': 'linear', 'feature_map': 'elu'} | settings
    return TopologicalViT((6, 8), 2, 3, 5, CHANNELS, 2, HEADS, 16, MASKS[mask], **arguments)


def images(count: int = 4) -> Tensor:
    return torch.rand(count, 3, 6, 8, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize(('mask', 'feature_map'), covering(MASKS, FEATURE_MAPS))
def test_routes_agree(mask: str, feature_map: str) -> None:
    dense = model(mask, feature_map=feature_map).double()
    general = model(mask, feature_map=feature_map, dense_limit=0).double()
    general.load_state_dict(dense.state_dict())
    results = []
    for vit in (dense, general):
        x = images().double().requires_grad_()
        out = vit(x)
        results.append([out, *torch.autograd.grad(out.square().sum(), [x, *vit.parameters()])])
    # Scores of the identity map cancel, and their sums with them.
    tolerance = 1e-6 if feature_map == 'identity' else 1e-8
    torch.testing.assert_close(*results, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize(('mask', 'dense_limit', 'attention'), covering(MASKS, [0, 256], ['linear', 'softmax']))
def test_images_of_a_batch_are_as_one_by_one(mask: str, dense_limit: int, attention: str) -> None:
    vit = model(mask, attention=attention, feature_map='favor', dense_limit=dense_limit).double()
    x = images().double() * torch.tensor([1.0, 5.0, 0.1, 1.0]).view(-1, 1, 1, 1)
    torch.testing.assert_close(vit(x), torch.cat([vit(image) for image in x.split(1)]))
    assert vit(x[:0]).shape == (0, 5)


@pytest.mark.parametrize(('mask', 'attention'), covering(MASKS, ['linear', 'softmax']))
def test_gradients_reach_every_parameter(mask: str, attention: str) -> None:
    vit = model(mask, attention=attention)
    vit(images()).square().sum().backward()
    for name, parameter in vit.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.any(), name


def test_model_is_pre_norm_blocks_between_embedding_and_mean() -> None:
    vit, x = model(dropout=0.5).eval(), images()
    tokens = torch.stack([
        vit.embedding.conv(x[:, :, row : row + 2, column : column + 2]).flatten(1)
        for row in range(0, 6, 2)
        for column in range(0, 8, 2)
    ], dim=1)  # fmt: skip
    tokens = tokens + vit.encoder.position
    for block in vit.encoder.blocks:
        tokens = tokens + block.attention(block.norm1(tokens), vit.encoder.graph)
        tokens = tokens + block.lin2(torch.nn.functional.gelu(block.lin1(block.norm2(tokens))))
    torch.testing.assert_close(vit(x), vit.head(vit.encoder.norm(tokens).mean(1)), rtol=1e-4, atol=1e-6)
    assert not torch.equal(vit.train()(x), vit(x))


@pytest.mark.parametrize('dense_limit', [0, 256])
def test_walks_are_prepared_once_for_each_seed(dense_limit: int) -> None:
    calls = []

    class Spy(GRFMask):
        def prepare(self, graph: Graph, generator: torch.Generator | None = None) -> object:
            calls.append((self.seed, graph.num_graphs))
            return super().prepare(graph, generator)

    vit = TopologicalViT(8, 2, 3, 5, CHANNELS, 3, HEADS, 16, lambda i: Spy(HEADS, seed=i % 2), dense_limit=dense_limit)
    for _ in range(3):
        for training in (True, False):
            vit.train(training)(torch.rand(4, 3, 8, 8))
    assert calls == [(seed, 1 if dense_limit else 4) for seed in (0, 1)]


def test_copies_and_pickles_leave_out_what_is_prepared() -> None:
    vit, x = model(dense_limit=0), images()
    unused = len(pickle.dumps(vit))
    expected, graph = vit(x), vit.encoder.graph(4)
    pickled = pickle.dumps(vit)
    assert len(pickled) == unused
    for copied in (pickle.loads(pickled), copy.deepcopy(vit)):
        assert torch.equal(copied(x), expected)
        assert copied.encoder.graph(4) is not graph
    assert vit.encoder.graph(4) is graph


def test_layers_have_walks_of_their_own() -> None:
    vit = model('grf')
    first, second = (block.attention.mask(vit.encoder.graph(1)).to_dense() for block in vit.encoder.blocks)
    assert not torch.equal(first != 0, second != 0)


def test_feature_maps_are_made_for_each_layer() -> None:
    vit = model(feature_map=partial(FavorFeatures, num_features=6))
    maps = [block.attention.feature_map for block in vit.encoder.blocks]
    assert maps[0].projection.shape == (6, CHANNELS // HEADS)
    assert not torch.equal(maps[0].projection, maps[1].projection)


@pytest.mark.parametrize('attention', ['linear', 'softmax'])
@pytest.mark.parametrize('dense_limit', [0, 256])
def test_gradients_are_finite_under_autocast(dense_limit: int, attention: str) -> None:
    vit = model(attention=attention, dense_limit=dense_limit)
    with torch.autocast('cpu', torch.bfloat16):
        out = vit(images())
    out.float().sum().backward()
    assert all(parameter.grad.isfinite().all() for parameter in vit.parameters())


@pytest.mark.parametrize('attention', ['linear', 'softmax'])
def test_model_learns_the_place_of_a_spot(attention: str) -> None:
    vit = model('positive', attention=attention)
    labels = torch.arange(20) % 5
    x = images(20) * 0.1
    x[torch.arange(20), :, 2, labels] += 1.0
    optimizer = torch.optim.Adam(vit.parameters(), 1e-2)
    for _ in range(80):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(vit(x), labels)
        loss.backward()
        optimizer.step()
    assert loss < 0.8  # log 5 = 1.6 by chance


@pytest.mark.parametrize(
    ('arguments', 'message'),
    [
        ({'patch_size': 3}, 'patch_size: got 3 for image_size=8; accepted: sizes that divide the images'),
        ({'patch_size': (2, 0)}, 'patch_size: got'),
        ({'heads': 3}, 'heads: got 3 for 8 channels'),
        ({'depth': 0}, 'depth: got 0'),
        ({'num_classes': -1}, 'num_classes: got -1'),
        ({'dropout': 1.5}, 'dropout: got 1.5'),
        ({'attention': 'dot'}, "attention: got 'dot'; accepted:"),
        ({'feature_map': 'cosine'}, "feature_map: got 'cosine'; accepted:"),
        ({'mask': PackingMask()}, 'mask: got a Mask; accepted: a function'),
        ({'mask': 'GRF'}, "mask: got 'GRF'; accepted: a function that makes a Mask for each layer"),
        ({'mask': lambda layer: GRFMask(3)}, 'mask: got a mask of 3 heads for heads=2'),
        ({'mask': lambda layer: 2.0 * GRFMask(2, resample='forward')}, 'mask: got a mask that draws walks anew'),
    ],
)
def test_bad_arguments(arguments: dict[str, object], message: str) -> None:
    good = {'image_size': 8, 'patch_size': 2, 'in_channels': 1, 'num_classes': 2, 'channels': 8, 'depth': 1, 'heads': 2}
    with pytest.raises(ValueError, match=message.replace('(', r'\(')):
        TopologicalViT(**({**good, 'mlp_channels': 8} | arguments))


def test_bad_images() -> None:
    with pytest.raises(ValueError, match=r'images: got shape \(4, 1, 6, 8\); accepted: \[B, 3, 6, 8\]'):
        model()(torch.rand(4, 1, 6, 8))
    with pytest.raises(ValueError, match=r'^images: got torch.float64; accepted: torch.float32, the data type of the param'):
        model()(torch.rand(4, 3, 6, 8).double())


def test_softmax_refuses_negative_masks() -> None:
    with pytest.raises(ValueError, match='mask: got entries down to -1 for attention="softmax"; accepted:'):
        TopologicalViT(4, 2, 1, 2, 8, 1, 2, 8, lambda layer: -PackingMask(), attention='softmax')(torch.rand(1, 1, 4, 4))


def test_masks_of_node_attributes_name_what_the_grid_lacks() -> None:
    with pytest.raises(ValueError, match="left: got the attribute name 'mask_left'"):
        TopologicalViT(4, 2, 1, 2, 8, 1, 2, 8, lambda layer: LowRankMask())(torch.rand(1, 1, 4, 4))


@pytest.mark.parametrize('mask', ['none', 'toeplitz'])
def test_training_goes_on_after_inference_mode(mask: str) -> None:
    vit, images = model(mask, dense_limit=1), torch.randn(2, 3, 6, 8)
    with torch.inference_mode():
        vit(images)
    vit(images).sum().backward()
    assert all(parameter.grad is not None for parameter in vit.parameters())
