"""A mask that was made without heads has those of its layer. One that was made with heads keeps them."""

import copy
from collections.abc import Callable

import pytest
import torch

from pyg_topomask import masks, nn
from pyg_topomask.errors import ArgumentError

#: Masks that learn something for each head, and the heads of this parameter.
LEARNING: dict[str, tuple[type[masks.Mask], dict[str, object], Callable[[masks.Mask], torch.Tensor]]] = {
    'adjacency': (masks.AdjacencyMask, {}, lambda mask: mask.self_loop),
    'grf': (masks.GRFMask, {'num_walks': 2}, lambda mask: mask.modulation),
    'power_series': (masks.PowerSeriesMask, {'coefficients': 'hops'}, lambda mask: mask.coefficients),
    'rwgnk': (masks.RWGNKMask, {'num_walks': None}, lambda mask: mask.log_lam),
    'hop': (masks.HopMask, {'max_hops': 3}, lambda mask: mask.raw_f),
    'heat': (masks.HeatKernelMask, {}, lambda mask: mask.raw_lam),
    'hypercube': (masks.HypercubeMask, {'dim': 2}, lambda mask: mask.raw_lam),
    'toeplitz': (masks.ToeplitzMask, {'shape_dims': 1}, lambda mask: mask.table),
    'tree': (masks.TreeMask, {'kind': 'distance'}, lambda mask: mask.raw_f),
    'sin_degree': (masks.SinDegreeMask, {}, lambda mask: mask.weight),
    'learned': (masks.LearnedFeaturesMask, {'num_nodes': 4}, lambda mask: mask.features.transpose(0, 1)),
    'stochastic': (masks.StochasticRPEMask, {}, lambda mask: next(mask.parameters()).transpose(0, -1)),
}


def test_a_mask_without_heads_is_one_with_the_heads_of_the_layer(subtests: pytest.Subtests) -> None:
    for name in LEARNING:
        with subtests.test(name=name):
            kind, options, learned = LEARNING[name]
            torch.manual_seed(0)
            mask = kind(**options)
            layer = nn.MaskedLinearAttention(16, 4, mask)
            assert layer.mask is mask
            assert mask.heads == 4
            expected = kind(4, **options)
            assert repr(mask) == repr(expected)
            assert [one.shape for one in mask.parameters()] == [one.shape for one in expected.parameters()]
            if name not in ('sin_degree', 'learned', 'stochastic'):  # which begin with random numbers
                assert torch.equal(learned(mask), learned(expected))
            one = kind(heads=1, **options)
            assert nn.MaskedLinearAttention(16, 4, one).mask.heads == 1
            assert nn.MaskedLinearAttention(16, 1, kind(**options)).mask.heads == 1


def test_parts_of_composed_masks_take_the_heads_too() -> None:
    composed = 2.0 * (masks.HopMask() + masks.AdjacencyMask(heads=1)).T
    layer = nn.MaskedLinearAttention(16, 4, composed)
    assert layer.mask.heads == 4
    assert [each.heads for each in composed.modules() if isinstance(each, masks.HopMask | masks.AdjacencyMask)] == [4, 1]
    several = masks.MultiHeadMask(masks.HopMask(), masks.HopMask())
    assert [mask.heads for mask in nn.MaskedLinearAttention(16, 2, several).mask.parts] == [1, 1]
    scaled = masks.HopMask(heads=1) * torch.tensor([1.0, 2.0])
    for mask in (several, scaled):  # composed of masks with one head each
        layer = nn.MaskedLinearAttention(16, 2, mask)
        assert layer.mask.heads == 2
        assert layer(torch.randn(3, 16), torch.tensor([[0, 1], [1, 0]])).shape == (3, 16)
    for other in (masks.PowerSeriesMask(heads=4), masks.PackingMask(heads=4), masks.SinDegreeMask(heads=4), torch.rand(4)):
        composed = masks.HopMask() * other
        assert nn.MaskedLinearAttention(16, 4, composed).mask.parts[0].heads == 4
    with pytest.raises(ArgumentError, match=r'^mask: got a mask of 2 heads for heads=4'):
        nn.MaskedLinearAttention(16, 4, masks.MultiHeadMask(masks.HopMask(), masks.HopMask()))


def test_softmax_attention_gives_its_heads_to_a_mask() -> None:
    assert nn.MaskedSoftmaxAttention(16, 4, masks.HopMask()).mask.f.shape == (4, 3)


def test_masks_that_learn_nothing_for_each_head_keep_one() -> None:
    for mask in (
        masks.PackingMask(),
        masks.AdjacencyMask(self_loop=None),
        masks.DenseMask(matrix=torch.nn.Parameter(torch.ones(3, 3))),
        masks.HopMask(f=torch.ones(1, 3)),
        masks.GRFMask(share_modulation=True),
    ):
        assert nn.MaskedLinearAttention(16, 4, mask).mask.heads == 1


def test_what_was_set_before_stays() -> None:
    mask = masks.HopMask().double().eval().requires_grad_(False)
    nn.MaskedLinearAttention(16, 4, copy.deepcopy(mask))
    nn.MaskedLinearAttention(16, 4, mask)
    assert (mask.raw_f.shape, mask.raw_f.dtype, mask.training, mask.raw_f.requires_grad) == ((4, 3), torch.double, False, False)
    copied = copy.deepcopy(masks.HopMask())
    assert nn.MaskedLinearAttention(16, 4, copied).mask.heads == 4


def test_changed_parameters_are_kept_with_a_warning() -> None:
    mask = masks.HopMask()
    with torch.no_grad():
        mask.raw_f.fill_(0.25)
    with pytest.warns(UserWarning, match=r'^mask: got a HopMask without heads whose parameters have changed .* All 4 heads'):
        layer = nn.MaskedLinearAttention(16, 4, mask)
    assert layer.mask.heads == 1
    assert bool((layer.mask.raw_f == 0.25).all())


def test_masks_of_users_take_the_heads_too() -> None:
    class Own(masks.AdjacencyMask):
        def __init__(self, strength: float = 2.0, heads: int = 1) -> None:
            super().__init__(heads, strength)

    assert nn.MaskedLinearAttention(16, 4, Own(3.0)).mask.self_loop.tolist() == [3.0] * 4
    assert nn.MaskedLinearAttention(16, 4, Own(3.0, 1)).mask.self_loop.tolist() == [3.0]
