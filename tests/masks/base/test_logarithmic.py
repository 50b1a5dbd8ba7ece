"""Numbers that are learned as they are, or as their logarithms: a checkpoint says which."""

import io

import pytest
import torch

from pyg_topomask.masks import GRFMask, PowerSeriesMask, ToeplitzMask

MIXED, POSITIVE = torch.tensor([1.0, -0.5, 0.2]), torch.tensor([1.0, 0.5, 0.2])
MAKE = {
    'walks': (lambda initial: GRFMask(max_walk_length=2, modulation=initial), lambda mask: mask.f),
    'pairs': (lambda initial: GRFMask(max_walk_length=2, modulation=initial, asymmetric='pairs'), lambda mask: mask.key_f),
    'series': (lambda initial: PowerSeriesMask(order=2, coefficients=initial), lambda mask: mask.alpha),
    'grid': (
        lambda initial: ToeplitzMask(shape_dims=1, window=1, initial=initial, positive=bool((initial > 0).all())),
        lambda mask: mask._numbers(mask.table),
    ),
}


@pytest.mark.parametrize('name', MAKE)
@pytest.mark.parametrize(('saved', 'initial'), [(MIXED, POSITIVE), (POSITIVE, MIXED), (POSITIVE, POSITIVE)])
def test_a_checkpoint_gives_its_numbers_whatever_the_mask_began_with(
    name: str, saved: torch.Tensor, initial: torch.Tensor
) -> None:
    make, numbers = MAKE[name]
    file = io.BytesIO()
    torch.save(make(saved).state_dict(), file)
    file.seek(0)
    mask = make(initial)
    mask.load_state_dict(torch.load(file, weights_only=True))
    torch.testing.assert_close(numbers(mask), saved.unsqueeze(0), rtol=1e-6, atol=1e-6)
    mask.reset_parameters()
    torch.testing.assert_close(numbers(mask), initial.unsqueeze(0), rtol=1e-6, atol=1e-6)
