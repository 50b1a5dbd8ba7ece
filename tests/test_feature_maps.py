import copy
import math

import numpy as np
import pytest
import torch
from oracles import confidence, softmax_kernel, standard_scores
from torch import Tensor
from torch_geometric.data import Data

from pyg_topomask.feature_maps import (
    FEATURE_MAPS,
    EluFeatures,
    FavorFeatures,
    FeatureMap,
    FourierFeatures,
    IdentityFeatures,
    ReLUFeatures,
    SquareFeatures,
)
from pyg_topomask.masks import GRFMask, PackingMask
from pyg_topomask.ops import masked_linear_attention


@pytest.mark.parametrize(
    ('feature_map', 'expected'),
    [
        (ReLUFeatures, [0.0, 0.0, 3.0]),
        (EluFeatures, [math.exp(-2.0), 1.0, 4.0]),
        (SquareFeatures, [4.0, 0.0, 9.0]),
        (IdentityFeatures, [-2.0, 0.0, 3.0]),
    ],
)
def test_elementwise_maps(feature_map: type[FeatureMap], expected: list[float]) -> None:
    x = torch.tensor([[[-2.0, 0.0, 3.0]]])
    q, k = feature_map(3)(x, x + 0.0)
    torch.testing.assert_close(q.flatten(), torch.tensor(expected))
    assert torch.equal(q, k)


@pytest.mark.parametrize('name', FEATURE_MAPS)
def test_maps_keep_nodes_and_heads_and_have_gradients(name: str) -> None:
    q, k = (torch.randn(5, 2, 4, requires_grad=True) for _ in range(2))
    features = FEATURE_MAPS[name](4)(q, k, torch.tensor([0, 0, 1, 1, 1]), 2)
    assert all(own.shape == (5, 2, 8 if name == 'fourier' else 4) for own in features)
    sum(own.square().sum() for own in features).backward()
    assert q.grad.isfinite().all()
    assert k.grad.isfinite().all()


@pytest.mark.parametrize('name', FEATURE_MAPS)
def test_maps_of_no_nodes(name: str) -> None:
    empty = torch.empty(0, 2, 4)
    for batch in (None, torch.empty(0, dtype=torch.long)):
        q, k = FEATURE_MAPS[name](4)(empty, empty, batch, 0 if batch is not None else 1)
        assert q.shape == k.shape == (0, 2, 8 if name == 'fourier' else 4)


RANDOM = pytest.mark.parametrize('random_features', [FavorFeatures, FourierFeatures])


def kernel_samples(random_features: type, orthogonal: bool, features: int, x: Tensor, y: Tensor) -> np.ndarray:
    layer = random_features(x.size(1), features, orthogonal, stabilize=False).double()
    generator, samples = torch.Generator().manual_seed(0), []
    for _ in range(2000):
        layer.redraw(generator)
        q, k = layer(x.unsqueeze(1), y.unsqueeze(1))
        samples.append((q.squeeze(1) @ k.squeeze(1).t()).numpy())
    return np.stack(samples)


@pytest.mark.parametrize('features', [3, 4, 10])
@pytest.mark.parametrize('orthogonal', [True, False])
@RANDOM
def test_random_features_estimate_the_softmax_kernel_without_bias(
    random_features: type, orthogonal: bool, features: int
) -> None:
    x, y = (0.7 * torch.randn(4, 4, generator=torch.Generator().manual_seed(seed)).double() for seed in (1, 2))
    samples = kernel_samples(random_features, orthogonal, features, x, y)
    scores = standard_scores(samples, softmax_kernel(x.numpy(), y.numpy()))
    assert np.abs(scores).max() < confidence(12 * 16)


@RANDOM
def test_orthogonal_features_have_the_smaller_error(random_features: type) -> None:
    x = 0.7 * torch.randn(4, 8, generator=torch.Generator().manual_seed(1)).double()
    variance = [kernel_samples(random_features, orthogonal, 8, x, x).var(0).mean() for orthogonal in (True, False)]
    assert variance[0] < variance[1]


def test_rows_of_the_projection_are_orthogonal_within_blocks_and_of_gaussian_length() -> None:
    layer = FavorFeatures(4, 10)
    for block in layer.projection.split(4):
        gram = block @ block.t()
        torch.testing.assert_close(gram, torch.diag(gram.diagonal()), atol=1e-5, rtol=0)
    squares = FavorFeatures(4, 4000).projection.double().square().sum(1).numpy()
    assert abs(standard_scores(squares[:, None], np.array([4.0])))[0] < confidence(1)


def attend(layer: FeatureMap, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    mask = GRFMask(2, 8).double()(Data(edge_index=torch.tensor([[0, 1, 2, 3], [1, 2, 3, 0]]), num_nodes=4))
    return masked_linear_attention(*layer(q, k), v, mask)


@RANDOM
def test_stabilised_attention_equals_unstabilised(random_features: type) -> None:
    q, k, v = (torch.randn(4, 2, 3, dtype=torch.float64) for _ in range(3))
    layer = random_features(3, 6).double()
    stable = attend(layer, q, k, v)
    layer.stabilize = False
    torch.testing.assert_close(stable, attend(layer, q, k, v))


@pytest.mark.parametrize('scale', [1e2, 1e4])
@RANDOM
def test_huge_inputs_stay_finite(random_features: type, scale: float) -> None:
    q, k, v = (torch.randn(6, 2, 4, requires_grad=True) for _ in range(3))
    features = random_features(4, 8)(scale * q, scale * k)
    out = masked_linear_attention(*features, v, PackingMask()(Data(num_nodes=6)))
    out.sum().backward()
    assert all(tensor.isfinite().all() for tensor in (*features, out, q.grad, k.grad, v.grad))


def test_key_stabiliser_of_a_graph_ignores_the_other_graphs() -> None:
    layer, q, k = FavorFeatures(4, 8), torch.randn(5, 2, 4), torch.randn(5, 2, 4)
    k[:3] *= 30.0  # the exponents of small keys would leave nothing of these
    alone = layer(q[:3], k[:3])
    batched = layer(q, k, torch.tensor([0, 0, 0, 1, 1]), 2)
    assert alone[1].any()
    for own, other in zip(alone, batched, strict=True):
        torch.testing.assert_close(other[:3], own)


@RANDOM
def test_key_stabiliser_is_one_constant_per_graph_and_head(random_features: type) -> None:
    k = torch.randn(5, 2, 4)
    layer = random_features(4, 8)
    _, stable = layer(k, k)
    layer.stabilize = False
    _, plain = layer(k, k)
    ratio = (stable / plain).flatten(2)
    torch.testing.assert_close(ratio, ratio[:1, :, :1].expand_as(ratio))


@pytest.mark.parametrize('dtype', [torch.bfloat16, torch.float16])
def test_half_precision_inputs_are_mapped_in_single(dtype: torch.dtype) -> None:
    q, _ = FavorFeatures(4)(torch.randn(3, 2, 4, dtype=dtype), torch.randn(3, 2, 4, dtype=dtype))
    assert q.dtype == torch.float32


def test_state_carries_the_projection() -> None:
    first, second = FavorFeatures(4, 6), FavorFeatures(4, 6)
    assert not torch.equal(first.projection, second.projection)
    second.load_state_dict(first.state_dict())
    assert torch.equal(first.projection, second.projection)
    assert torch.equal(copy.deepcopy(first).projection, first.projection)


def test_projection_is_redrawn_on_request_and_by_the_generator() -> None:
    layer = FavorFeatures(4, 6)
    before = layer.projection.clone()
    layer.redraw()
    assert not torch.equal(layer.projection, before)
    layer.redraw(torch.Generator().manual_seed(1))
    first = layer.projection.clone()
    layer.redraw(torch.Generator().manual_seed(1))
    assert torch.equal(layer.projection, first)
    layer.reset_parameters()
    assert not torch.equal(layer.projection, first)
    assert not list(layer.parameters())


@pytest.mark.parametrize('name', FEATURE_MAPS)
def test_maps_need_channels(name: str) -> None:
    with pytest.raises(ValueError, match=r'^channels: got 0'):
        FEATURE_MAPS[name](0)


def test_random_features_are_at_least_one() -> None:
    with pytest.raises(ValueError, match=r'^num_features: got 0'):
        FavorFeatures(4, 0)
