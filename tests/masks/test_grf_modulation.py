"""The modulation of GRF masks: kernels by name, shared, positive."""

import math
import warnings

import numpy as np
import pytest
import torch
from graphs import small_digraph, small_graph
from grf_samples import make
from torch_geometric.data import Data

from pyg_topomask.masks import GRFMask, PowerSeriesMask


def heat(time: float, hops: int = 4) -> list[float]:
    return [math.exp(-time) * time**k / math.factorial(k) for k in range(hops + 1)]


def test_modulation_by_the_name_of_a_kernel_makes_the_mask_estimate_it(subtests: pytest.Subtests) -> None:
    for asymmetric, name, expected in [
        # exp(-t L) is the square of exp(-t L / 2).
        (False, 'heat', heat(0.5)),
        (False, 'heat:3', heat(1.5)),
        ('pairs', 'heat:3', heat(1.5)),
        (True, 'heat:2', heat(2.0)),
        (False, 'diffusion:2', heat(1.0)),
        (True, 'diffusion:2', heat(2.0)),
        (False, 'random_walk:3', [2.0, 1.0, 0.0, 0.0, 0.0]),
        (True, 'random_walk:3', [4.0, 4.0, 1.0, 0.0, 0.0]),
        (True, 'regularized_laplacian', [0.5, 0.25, 0.125, 0.0625, 0.03125]),
        (True, 'cosine:2', [math.cos(2), math.sin(2) * 2, -math.cos(2) * 2, -math.sin(2) * 8 / 6, math.cos(2) * 16 / 24]),
    ]:
        with subtests.test(asymmetric=asymmetric, name=name, expected=expected):
            mask = GRFMask(2, asymmetric=asymmetric, modulation=name)
            assert mask.modulation.dtype == torch.float32
            np.testing.assert_allclose(mask.f.detach().numpy(), [expected, expected], atol=1e-6)
            if asymmetric == 'pairs':
                np.testing.assert_allclose(mask.key_f.detach().numpy(), [expected, expected], atol=1e-6)
                assert torch.equal(mask.key_f, mask.f)


def test_shared_modulation_is_one_for_all_heads() -> None:
    data = small_graph()
    shared, apart = GRFMask(3, share_modulation=True, asymmetric='pairs'), GRFMask(3, asymmetric='pairs')
    assert shared.modulation.shape == shared.key_modulation.shape == (1, 5)
    assert shared.f.shape == shared.key_f.shape == (3, 5)
    for mask in (shared, apart):
        with torch.no_grad():
            mask.modulation[0] = torch.tensor([0.3, -0.2, 0.9, 0.0, 1.0])
    shared_dense, apart_dense = shared(data).to_dense(), apart(data).to_dense()
    assert shared_dense.shape == (3, 6, 6)
    assert torch.equal(shared_dense[0], shared_dense[2])
    torch.testing.assert_close(shared_dense[0], apart_dense[0])
    assert not torch.allclose(apart_dense[0], apart_dense[2])
    with torch.no_grad():
        apart.modulation.copy_(shared.modulation.expand(3, -1))
    per_head = apart(data).to_dense().square().sum()
    (expected,) = torch.autograd.grad(per_head, apart.modulation)
    (gradient,) = torch.autograd.grad(shared_dense.square().sum(), shared.modulation)
    torch.testing.assert_close(gradient, expected.sum(0, keepdim=True), rtol=1e-4, atol=1e-4)


def test_shared_modulation_takes_equal_ones_per_head() -> None:
    given = torch.tensor([[1.0, 2.0], [1.0, 2.0]])
    mask = GRFMask(2, max_walk_length=1, modulation=given, share_modulation=True, positive=False)
    assert mask.modulation.tolist() == [[1.0, 2.0]]
    copied = GRFMask(2, max_walk_length=1, share_modulation=True, positive=False)
    copied.load_state_dict(mask.state_dict())
    assert copied.f.tolist() == given.tolist()


@pytest.mark.parametrize(
    ('modulation', 'positive'), [(None, True), ('heat', True), ([1.0, -0.5, 0.2], False), ([1.0, 0.0, 0.5], False)], ids=str
)
def test_modulation_stays_positive_where_it_starts_so(modulation: object, positive: bool) -> None:
    mask = GRFMask(max_walk_length=2, modulation=modulation)
    assert mask.positive == positive
    assert torch.equal(mask.f, mask.modulation.exp() if positive else mask.modulation)


def test_positive_modulation_starts_as_given_and_stays_positive() -> None:
    given = torch.tensor([[1.0, 0.5, 0.01], [2.0, 3.0, 1e-6]])
    mask = GRFMask(2, 4, 0.3, 2, given, positive=True, asymmetric='pairs')
    torch.testing.assert_close(mask.f, given)
    torch.testing.assert_close(mask.key_f, given)
    optimizer = torch.optim.SGD(mask.parameters(), lr=1.0)
    for _ in range(20):
        optimizer.zero_grad()
        mask(small_graph()).to_dense().sum().backward()
        optimizer.step()
    assert (mask.f > 0).all()
    assert (mask.f < given).all()
    assert (mask(small_graph()).entries().value >= 0).all()
    mask.reset_parameters()
    torch.testing.assert_close(mask.f, given)
    torch.testing.assert_close(mask.key_f, given)


def test_positive_mask_is_the_mask_of_its_modulation() -> None:
    given = torch.tensor([1.0, 0.5, 0.25])
    data = small_digraph()
    torch.testing.assert_close(make(modulation=given)(data).to_dense(), make(positive=False, modulation=given)(data).to_dense())
    by_name = GRFMask(max_walk_length=3, modulation='heat', positive=True)
    np.testing.assert_allclose(by_name.f.detach().numpy(), [heat(0.5, 3)], rtol=1e-5)


def complete(num_nodes: int, weight: float = 1.0) -> Data:
    edges = (1 - torch.eye(num_nodes)).nonzero().t()
    return Data(edge_index=edges, edge_weight=torch.full((edges.size(1),), weight), num_nodes=num_nodes)


@pytest.mark.parametrize('settings', [{}, {'asymmetric': True}, {'asymmetric': 'pairs'}, {'positive': False}], ids=str)
def test_terms_that_still_grow_warn_with_the_spectral_radius(settings: dict[str, object]) -> None:
    """The complete graph of n nodes has the spectral radius n - 1."""
    mask = GRFMask(2, normalization=None, **settings)
    with pytest.warns(UserWarning, match=r'^The spectral radius of \|W\| is 29, and'):
        mask(complete(30))
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        mask(complete(30, weight=0.05))  # 29 * 0.05 / 2 < 1


def test_terms_of_one_modulation_of_a_pair_are_enough_for_the_warning() -> None:
    mask = GRFMask(2, normalization=None, asymmetric='pairs')
    with torch.no_grad():
        mask.key_modulation[1, -1] = 1.0
    with pytest.warns(UserWarning, match=r'^The spectral radius of \|W\| is 1\.45, and'):
        mask(complete(30, weight=0.05))


@pytest.mark.parametrize('settings', [{}, {'normalization': 'rw'}, {'normalization': None, 'importance': False}], ids=str)
def test_radius_is_not_computed_where_terms_cannot_grow(settings: dict[str, object], monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> float:
        raise AssertionError('the spectral radius was computed')

    monkeypatch.setattr('pyg_topomask.masks.power_series.spectral_radius', refuse)
    GRFMask(2, **settings)(complete(30))
    with pytest.raises(AssertionError, match='was computed'):
        GRFMask(2, normalization=None)(complete(30))


def test_modulation_of_a_kernel_is_exact_in_double_precision() -> None:
    mask = GRFMask(max_walk_length=6, modulation='heat:2', asymmetric='pairs')
    mask.double().reset_parameters()
    np.testing.assert_allclose(mask.f.detach().numpy(), [heat(1.0, 6)], rtol=1e-13)
    np.testing.assert_allclose(mask.key_f.detach().numpy(), [heat(1.0, 6)], rtol=1e-13)


@pytest.mark.parametrize(
    ('hops', 'name', 'asymmetric'),
    [(0, 'random_walk', False), (1, 'random_walk', True), (1, 'random_walk:p=4', 'pairs'), (2, 'random_walk:p=3', False)],
)
def test_walks_too_short_for_a_kernel_warn(hops: int, name: str, asymmetric: bool | str) -> None:
    with pytest.warns(UserWarning, match=f'^max_walk_length is {hops}, but the kernel .*; {hops + 1} reaches them'):
        GRFMask(max_walk_length=hops, modulation=name, asymmetric=asymmetric)
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        GRFMask(max_walk_length=hops + 1, modulation=name, asymmetric=asymmetric)


@pytest.mark.parametrize(
    ('hops', 'name', 'asymmetric', 'share', 'needed'),
    [
        # 1 - exp(-3) (1 + 3 + 9 / 2)
        (2, 'heat:3', True, 58, 5),
        # f = exp(-3 / 2) (1, 3 / 2, 9 / 8), whose product with itself makes powers 3 and 4 in part
        (2, 'heat:3', False, 35, 5),
        (300, 'heat:600', True, 100, 631),
        (2, 'regularized_laplacian:3', True, 73, 21),
    ],
)
def test_a_series_that_is_cut_short_warns(hops: int, name: str, asymmetric: bool, share: int, needed: int) -> None:
    message = f'^max_walk_length is {hops}, which leaves out {share}% of the kernel {name!r}, .*; {needed} is needed'
    with pytest.warns(UserWarning, match=message):
        GRFMask(max_walk_length=hops, modulation=name, asymmetric=asymmetric)
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        GRFMask(max_walk_length=needed, modulation=name, asymmetric=asymmetric)
    with pytest.warns(UserWarning, match='leaves out'):
        GRFMask(max_walk_length=needed - 1, modulation=name, asymmetric=True)


def test_a_series_of_more_terms_than_are_looked_at_warns() -> None:
    with pytest.warns(UserWarning, match=r'leaves out 100% .*; more than \d+ is needed'):
        PowerSeriesMask(order=2, coefficients='heat:700')
