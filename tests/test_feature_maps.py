import copy
import math
from itertools import pairwise

import numpy as np
import pytest
import torch
from grids import covering
from oracles import confidence, softmax_kernel, standard_scores
from scipy.linalg import sqrtm
from scipy.optimize import minimize_scalar
from scipy.special import gamma, iv
from torch import Tensor
from torch_geometric.data import Data

from pyg_topomask.feature_maps import (
    DenseExponentialFeatures,
    EluFeatures,
    FavorFeatures,
    FeatureMap,
    FocusedFeatures,
    FourierFeatures,
    IdentityFeatures,
    PositiveFeatures,
    ReLUFeatures,
    SimplexFeatures,
    SquareFeatures,
)
from pyg_topomask.feature_maps.names import FEATURE_MAPS, feature_map_of_name
from pyg_topomask.graphs.segments import Segments
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
    features = FEATURE_MAPS[name](4)(q, k, Segments(5, torch.tensor([0, 0, 1, 1, 1])))
    assert all(mapped.shape == (5, 2, 8 if name == 'fourier' else 4) for mapped in features)
    sum(mapped.square().sum() for mapped in features).backward()
    assert q.grad.isfinite().all()
    assert k.grad.isfinite().all()


@pytest.mark.parametrize('scale', [1e-3, 1.0, 30.0])
def test_derivatives_of_attention_are_bounded_by_the_values_for_elu_alone(scale: float) -> None:
    generator = torch.Generator().manual_seed(0)
    q, k = (scale * torch.randn(60, 1, 4, generator=generator, dtype=torch.float64) for _ in range(2))
    value = torch.rand(60, 1, 1, generator=generator, dtype=torch.float64)
    mask = PackingMask(1)(Data(edge_index=torch.empty(2, 0, dtype=torch.long), num_nodes=60))
    largest = {}
    for name in ('relu', 'square', 'elu'):
        q.requires_grad_(), k.requires_grad_()
        out = masked_linear_attention(*FEATURE_MAPS[name](4)(q, k), value, mask)
        gradients = [torch.autograd.grad(each, [q, k], retain_graph=True) for each in out.flatten().unbind()]
        largest[name] = max(gradient.abs().max().item() for pair in gradients for gradient in pair)
    assert largest['elu'] <= float(value.max() - value.min())
    assert scale > 1e-3 or min(largest['relu'], largest['square']) > 10


@pytest.mark.parametrize('name', FEATURE_MAPS)
def test_maps_of_no_nodes(name: str) -> None:
    empty = torch.empty(0, 2, 4)
    for batch in (None, torch.empty(0, dtype=torch.long)):
        q, k = FEATURE_MAPS[name](4)(empty, empty, Segments(0, batch))
        assert q.shape == k.shape == (0, 2, 8 if name == 'fourier' else 4)


RANDOM = pytest.mark.parametrize(
    'random_features', [DenseExponentialFeatures, FavorFeatures, FourierFeatures, PositiveFeatures, SimplexFeatures]
)
ORTHOGONAL_OR_NOT = pytest.mark.parametrize('random_features', [FavorFeatures, FourierFeatures])


def kernel_samples(layer: FeatureMap, x: Tensor, y: Tensor, draws: int = 1000) -> np.ndarray:
    layer = layer.double()
    layer.stabilize = False
    samples = []
    for seed in range(draws):
        layer.redraw(torch.Generator().manual_seed(seed))
        q, k = layer(x.unsqueeze(1), y.unsqueeze(1))
        samples.append((q.squeeze(1) @ k.squeeze(1).t()).numpy())
    return np.stack(samples)


def inputs(scale: float, rows: int, channels: int) -> tuple[Tensor, Tensor]:
    x, y = (scale * torch.randn(rows, channels, generator=torch.Generator().manual_seed(seed)).double() for seed in (1, 2))
    return x, y


@pytest.mark.parametrize(('orthogonal', 'features'), covering([True, False], [3, 4, 10]))
@ORTHOGONAL_OR_NOT
def test_random_features_estimate_the_softmax_kernel_without_bias(
    random_features: type, orthogonal: bool, features: int
) -> None:
    x, y = inputs(0.7, 4, 4)
    samples = kernel_samples(random_features(4, features, orthogonal), x, y)
    scores = standard_scores(samples, softmax_kernel(x.numpy(), y.numpy()))
    assert np.abs(scores).max() < confidence(12 * 16)


@pytest.mark.parametrize(
    ('random_features', 'size'),
    covering([PositiveFeatures, SimplexFeatures, DenseExponentialFeatures], [(1, 3), (2, 2), (4, 3), (4, 10)]),
)
def test_simplex_and_independent_features_are_unbiased(random_features: type, size: tuple[int, int]) -> None:
    channels, features = size
    x, y = inputs(0.4, 4, channels)
    samples = kernel_samples(random_features(channels, features), x, y)
    expected = softmax_kernel(x.numpy(), y.numpy())
    assert np.abs(standard_scores(samples, expected)).max() < confidence(8 * 16)
    # A scale forgotten, or half folded in, would show.
    for wrong in (np.exp(x.numpy() @ y.numpy().T), 1.05 * expected):
        assert channels == 1 or np.abs(standard_scores(samples, wrong)).max() > confidence(8 * 16)


def test_orthogonal_fourier_features_have_the_smaller_error() -> None:
    x = inputs(0.7, 4, 8)[0]
    variance = [kernel_samples(FourierFeatures(8, 8, orthogonal), x, x, 500).var(0).mean() for orthogonal in (True, False)]
    assert variance[0] < variance[1]


def conformity(layer: FeatureMap, draws: int, length: float = 2.0) -> np.ndarray:
    """The mean of exp((w_i + w_j)^T v) over i != j and the directions of v, for each draw: all that couplings change in the
    mean squared error of positive features. Its mean over directions is a Bessel function of |w_i + w_j| |v|.
    """
    order, samples = layer.channels / 2 - 1, []
    for seed in range(draws):
        layer.redraw(torch.Generator().manual_seed(seed))
        rows = layer.projection.double().numpy()
        first, second = np.triu_indices(len(rows), 1)
        reach = length * np.linalg.norm(rows[first] + rows[second], axis=1)
        samples.append((gamma(order + 1) * (2 / reach) ** order * iv(order, reach)).mean())
    return np.array(samples)


@pytest.mark.parametrize('channels', [3, 4, 8])
def test_simplex_features_have_the_smallest_error_and_independent_ones_the_largest(channels: int) -> None:
    # Draws share their seeds, and so their lengths: differences vary little.
    maps = (SimplexFeatures, FavorFeatures, PositiveFeatures)
    errors = [conformity(feature_map(channels), 400) for feature_map in maps]
    for smaller, larger in pairwise(errors):
        assert standard_scores((larger - smaller)[:, None], np.zeros(1))[0] > 4.0


@pytest.mark.parametrize('channels', [1, 2, 3, 8])
def test_rows_of_a_simplex_block_are_the_corners_of_a_regular_simplex(channels: int) -> None:
    layer = SimplexFeatures(channels, 2 * channels + 1)
    expected = np.full((channels, channels), -1 / max(channels - 1, 1))
    np.fill_diagonal(expected, 1.0)
    for block in torch.nn.functional.normalize(layer.projection.double()).split(channels):
        np.testing.assert_allclose((block @ block.t()).numpy(), expected[: len(block), : len(block)], atol=1e-5)
    squares = SimplexFeatures(channels, 4000).projection.double().square().sum(1).numpy()
    assert abs(standard_scores(squares[:, None], np.array([float(channels)])))[0] < confidence(4)


def test_directions_of_simplex_features_are_uniform() -> None:
    layer, generator = SimplexFeatures(3), torch.Generator().manual_seed(0)
    moments = []
    for _ in range(1000):
        layer.redraw(generator)
        last = torch.nn.functional.normalize(layer.projection.double())[2]
        moments.append(torch.cat([last, torch.outer(last, last).flatten()]).numpy())
    expected = np.concatenate([np.zeros(3), np.eye(3).flatten() / 3])
    assert np.abs(standard_scores(np.stack(moments), expected)).max() < confidence(12)


def dense_exponential(projection: np.ndarray, q: np.ndarray, k: np.ndarray) -> list[np.ndarray]:
    """Features by the equation, with the A that has the smallest mean logarithm of the second moment over all pairs."""
    q, k = (x / q.shape[1] ** 0.25 for x in (q, k))
    pairs = (q[:, None] + k[None]).reshape(-1, q.shape[1])
    size, axes = np.linalg.eigh(pairs.T @ pairs / len(pairs))
    tilt = axes @ np.diag([best_tilt(each) for each in size]) @ axes.T
    inner = np.eye(len(tilt)) - 4 * tilt
    factor = np.linalg.det(inner) ** 0.25 / np.sqrt(len(projection))
    own = np.einsum('mc,cd,md->m', projection, tilt, projection)
    lengths = [0.5 * np.square(x).sum(1, keepdims=True) for x in (q, k)]
    return [factor * np.exp(own + x @ sqrtm(inner) @ projection.T - length) for x, length in zip((q, k), lengths, strict=True)]


def log_second_moment(a: float, size: float) -> float:
    """The part of E[(phi(x) phi(y))^2] that depends on one eigenvalue a of A, if the square of (x + y) along it is this size:
    (1 - 4 a) / (1 - 8 a)^(1/2) exp(2 size (1 - 4 a) / (1 - 8 a)), by the integral of a Gaussian.
    """
    return math.log(1 - 4 * a) - 0.5 * math.log(1 - 8 * a) + 2 * size * (1 - 4 * a) / (1 - 8 * a)


def best_tilt(size: float) -> float:
    return minimize_scalar(
        log_second_moment, (-1 - size, 0.0), args=(size,), bounds=(-1 - size, 0.1), options={'xatol': 1e-12}
    ).x


def test_dense_exponential_features_minimize_the_second_moment() -> None:
    x, y = (scale * torch.randn(9, 2, 3).double() for scale in (1.2, 0.4))
    x = x + torch.tensor([2.0, 0.0, -1.0])
    layer = DenseExponentialFeatures(3, 5, stabilize=False).double()
    features = layer(x, y)
    for head in range(2):
        expected = dense_exponential(layer.projection.numpy(), x[:, head].numpy(), y[:, head].numpy())
        for mine, theirs in zip(features, expected, strict=True):
            np.testing.assert_allclose(mine[:, head].numpy(), theirs, rtol=1e-5)


def test_second_moments_of_dense_exponential_features_follow_the_formula() -> None:
    generator = np.random.default_rng(0)
    omega = generator.standard_normal(400_000)
    a, total = -0.2, 0.8
    squares = (1 - 4 * a) * np.exp(4 * a * omega**2 + 2 * np.sqrt(1 - 4 * a) * omega * total)
    expected = math.exp(log_second_moment(a, total**2))
    assert abs(squares.mean() - expected) < confidence(1) * squares.std() / math.sqrt(len(squares))


def test_dense_exponential_features_have_the_smaller_error() -> None:
    x, y = (scaled * torch.tensor([1.6, 0.8, 0.4, 0.2]) for scaled in inputs(1.0, 30, 4))
    expected = softmax_kernel(x.numpy(), y.numpy())
    # Draws share their seeds. The logarithm is not ruled by a few draws.
    larger, smaller = (
        np.log(np.square(kernel_samples(made(4, 8), x, y, 300) / expected - 1).mean((1, 2)))
        for made in (FavorFeatures, DenseExponentialFeatures)
    )
    assert standard_scores((larger - smaller)[:, None], np.zeros(1))[0] > 4.0


def test_dense_exponential_features_depend_on_their_own_graph_and_head_alone() -> None:
    layer, q, k = DenseExponentialFeatures(4, 8), torch.randn(6, 2, 4), torch.randn(6, 2, 4)
    before = layer(q, k, Segments(6, torch.tensor([0, 0, 0, 2, 2, 2]), 4))
    q[3:], k[:, 1] = 5 * q[3:], 5 * k[:, 1]
    after = layer(q, k, Segments(6, torch.tensor([0, 0, 0, 2, 2, 2]), 4))
    for old, new in zip(before, after, strict=True):
        torch.testing.assert_close(new[:3, 0], old[:3, 0])
        assert not torch.allclose(new[3:, 0], old[3:, 0])


@pytest.mark.parametrize('power', [0.5, 1.0, 3.0])
def test_focused_features_are_powers_of_the_same_length(power: float) -> None:
    x = torch.randn(7, 2, 5, dtype=torch.float64)
    x[0] = -1.0
    positive = np.maximum(x.numpy(), 0.0)
    sharp = positive**power
    length = np.linalg.norm(sharp, axis=-1, keepdims=True)
    expected = sharp * np.linalg.norm(positive, axis=-1, keepdims=True) / np.where(length == 0, 1.0, length)
    q, _ = FocusedFeatures(5, power)(x, x)
    np.testing.assert_allclose(q.numpy(), expected, rtol=1e-12, atol=1e-12)


def test_focused_features_have_the_right_gradient_and_stay_finite() -> None:
    x = torch.tensor([[[0.3, -1.0, 2.0]], [[-0.5, -2.0, -3.0]], [[0.0, 0.0, 0.0]]], dtype=torch.float64, requires_grad=True)
    layer, root = FocusedFeatures(3), FocusedFeatures(3, 0.5)
    assert torch.autograd.gradcheck(lambda x: layer(x, x)[0], x[:2])
    assert torch.autograd.grad(root(x, x)[0].sum(), x)[0].isfinite().all()
    for scale in (1e-30, 1e-12, 1e2, 1e15, 1e18):
        big = (scale * x.detach().float()).requires_grad_()
        q = layer(big, big)[0]
        (q.sum() / scale).backward()
        assert q.isfinite().all()
        assert big.grad.isfinite().all()
        torch.testing.assert_close(q / scale, layer(x.float(), x.float())[0])
    assert not layer(x, x)[0][1:].any()


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
    layer = random_features(4, 8)
    layer.stabilize = False
    assert all(mapped.isfinite().all() for mapped in layer(scale * q, scale * k))


def test_the_largest_feature_of_a_query_does_not_depend_on_its_length() -> None:
    q = torch.randn(6, 2, 4) * torch.tensor([1e-3, 1.0, 10.0, 30.0, 60.0, 90.0]).view(6, 1, 1)
    features, _ = FavorFeatures(4, num_features=9)(q, q)
    torch.testing.assert_close(features.amax(-1), torch.full((6, 2), 1 / 3))


def test_key_stabiliser_of_a_graph_ignores_the_other_graphs() -> None:
    layer, q, k = FavorFeatures(4, 8), torch.randn(5, 2, 4), torch.randn(5, 2, 4)
    k[:3] *= 30.0  # the exponents of small keys would leave nothing of these
    alone = layer(q[:3], k[:3])
    batched = layer(q, k, Segments(5, torch.tensor([0, 0, 0, 1, 1])))
    assert alone[1].any()
    for single, together in zip(alone, batched, strict=True):
        torch.testing.assert_close(together[:3], single)


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


@pytest.mark.parametrize('dtype', [torch.bfloat16, torch.float16, torch.float32])
def test_elu_features_far_below_zero_keep_their_digits(dtype: torch.dtype) -> None:
    x = torch.tensor([-60.0, -17.0, -7.0, -0.5, 0.0, 3.0, 300.0], dtype=dtype).view(1, 1, -1).requires_grad_()
    features = EluFeatures(7)(x, x)[0]
    exact = x.detach().double().numpy()
    np.testing.assert_allclose(features.detach().numpy(), np.where(exact > 0, exact + 1, np.exp(np.minimum(exact, 0))), 1e-5)
    (grad,) = torch.autograd.grad(features.sum(), x)
    np.testing.assert_allclose(grad.double().numpy(), np.exp(np.minimum(exact, 0)), 1e-2, 1e-7)


def test_tiny_elu_features_are_divided_by_the_largest_of_a_query_and_of_the_keys_of_a_graph() -> None:
    x = torch.tensor([[-200.0, -210.0], [1.0, -1.0], [-50.0, -60.0], [-55.0, -52.0]])
    y = x.double().numpy()
    largest = np.minimum([[-200.0], [1.0], [-50.0], [-52.0]], 0), np.array([[0.0], [0.0], [-50.0], [-50.0]])
    for nodes in (2, 4):  # the features of the first one alone are 0 but for this
        both = EluFeatures(2)(*(x[:nodes].unsqueeze(1),) * 2, Segments(nodes, torch.tensor([0, 0, 1, 1])[:nodes]))
        for features, shift in zip(both, largest, strict=True):
            expected = np.maximum(y, 0) + np.exp(np.minimum(y, 0) - shift)
            np.testing.assert_allclose(features.squeeze(1), expected[:nodes], rtol=1e-5, atol=1e-30)


def test_squares_of_large_keys_keep_their_ratios() -> None:
    k = torch.tensor([1e25, 1e24, 1.0, 3.0]).view(4, 1, 1)
    features = SquareFeatures(1)(k, k, Segments(4, torch.tensor([0, 0, 1, 1])))[1].flatten().tolist()
    assert (features[0] / features[1], features[3] / features[2]) == (pytest.approx(100), pytest.approx(9))


def test_long_vectors_are_shortened_and_no_others() -> None:
    """Scaled vectors of length 3000 to 1000, where the exponents of two features differ by 1."""
    layer = FavorFeatures(2, 2).double()
    layer.projection.copy_(torch.tensor([[1.0, 0.0], [1.001, 0.0]]))
    lengths = np.array([3000.0, 500.0, 0.5])
    q = torch.stack([torch.from_numpy(lengths), torch.zeros(3, dtype=torch.float64)], 1).unsqueeze(1) * 2**0.25
    expected = np.exp(-0.001 * lengths.clip(max=1000.0)) / np.sqrt(2)
    np.testing.assert_allclose(layer(q, q)[0][:, 0, 0].numpy(), expected, rtol=1e-4)


def test_squares_of_large_numbers_in_half_precision_are_finite() -> None:
    x = torch.full((1, 1, 2), 6e4, dtype=torch.float16)
    torch.testing.assert_close(SquareFeatures(2)(x, x)[0], x.float() ** 2)


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


# By name --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize('name', FEATURE_MAPS)
def test_maps_by_name(name: str) -> None:
    assert type(feature_map_of_name(name, 4)) is FEATURE_MAPS[name]
    assert feature_map_of_name(name, 4).channels == 4


@pytest.mark.parametrize(('name', 'columns'), [('favor', 9), ('positive', 9), ('simplex', 9), ('derf', 9), ('fourier', 18)])
def test_names_may_give_the_number_of_features(name: str, columns: int) -> None:
    q, _ = feature_map_of_name(f'{name}:9', 4)(torch.randn(5, 2, 4), torch.randn(5, 2, 4))
    assert q.shape == (5, 2, columns)


def test_unknown_names(subtests: pytest.Subtests) -> None:
    for name in ['cosine', 'relu:4', 'favor:', 'favor:0', 'favor:-3', 'favor:2.5', 'favor:many', '']:
        with subtests.test(name=name), pytest.raises(ValueError, match=r'^(feature_map|num_features): got'):
            feature_map_of_name(name, 4)


def test_only_random_projections_are_redrawn() -> None:
    for name in FEATURE_MAPS:
        feature_map = feature_map_of_name(name, 4)
        before = copy.deepcopy(feature_map.state_dict())
        feature_map.redraw(torch.Generator().manual_seed(1))
        assert before.keys() == feature_map.state_dict().keys()
        assert all(not torch.equal(value, before[key]) for key, value in feature_map.state_dict().items())
