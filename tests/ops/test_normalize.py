import pytest
import torch

from pyg_topomask.ops.normalize import inverse_weight

EPS = torch.finfo(torch.float32).eps


def inverse(denominator: float, magnitude: float) -> float:
    return float(inverse_weight(torch.tensor([[denominator]]), torch.tensor([[magnitude]])))


def test_rows_keep_their_sign() -> None:
    assert inverse(2.0, 2.0) == 0.5
    assert inverse(-2.0, 2.0) == -0.5
    assert inverse(1e-20, 1e-20) == pytest.approx(1e20)


def test_rows_without_weight_have_inverse_zero(subtests: pytest.Subtests) -> None:
    for denominator, magnitude in [(0.0, 0.0), (0.0, 1.0), (EPS, 1.0), (-EPS, 1.0), (8 * EPS, 1.0), (1e-40, 1e-40)]:
        with subtests.test(denominator=denominator, magnitude=magnitude):
            assert inverse(denominator, magnitude) == 0.0


def test_what_is_lost_to_rounding_is_relative_to_the_magnitude() -> None:
    assert inverse(1e-3, 1.0) == pytest.approx(1e3)
    assert inverse(1e-3, 1e6) == 0.0
    assert inverse(32 * EPS, 1.0) == 1 / (32 * EPS)


@pytest.mark.parametrize('dtype', [torch.float32, torch.float64])
def test_inverses_are_finite(dtype: torch.dtype) -> None:
    weight = torch.cat([torch.logspace(-320, 300, 200, dtype=torch.float64), torch.zeros(1)]).to(dtype)
    weight = weight[weight.isfinite()]
    for signed in (weight, -weight):
        assert inverse_weight(signed, signed.abs()).isfinite().all()
