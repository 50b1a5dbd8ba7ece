from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from pyg_topomask.apps.recommend.recommender import DirectAULoss, alignment, uniformity


def unit(x: Tensor) -> np.ndarray:
    x = x.detach().double().numpy()
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def dense_alignment(x: Tensor, y: Tensor) -> float:
    return float(np.mean([((a - b) ** 2).sum() for a, b in zip(unit(x), unit(y), strict=True)]))


def dense_uniformity(x: Tensor, t: float) -> float:
    rows = unit(x)
    n = len(rows)
    kernel = [math.exp(-t * ((rows[i] - rows[j]) ** 2).sum()) for i in range(n) for j in range(i + 1, n)]
    return math.log(sum(kernel) / len(kernel))


@pytest.mark.parametrize('t', [0.5, 1.0, 2.0, 5.0])
def test_alignment_and_uniformity(t: float) -> None:
    x, y = torch.randn(2, 7, 4, dtype=torch.double) * torch.tensor([[3.0], [0.1], [1], [1], [2], [1], [1]])
    assert float(alignment(x, y)) == pytest.approx(dense_alignment(x, y), rel=1e-12)
    assert float(uniformity(x, t)) == pytest.approx(dense_uniformity(x, t), rel=1e-12)
    for average, factor in ((True, 0.5), (False, 1.0)):
        expected = dense_alignment(x, y) + 0.3 * factor * (dense_uniformity(x, t) + dense_uniformity(y, t))
        assert float(DirectAULoss(0.3, t, average)(x, y)) == pytest.approx(expected, rel=1e-12)


def test_gradients() -> None:
    x, y = (torch.randn(5, 3, dtype=torch.double, requires_grad=True) for _ in range(2))
    assert torch.autograd.gradcheck(alignment, (x, y))
    assert torch.autograd.gradcheck(lambda rows: uniformity(rows, 2.0), (x,))
    assert torch.autograd.gradcheck(lambda rows: uniformity(rows, 0.7), (x,))
    assert torch.autograd.gradcheck(DirectAULoss(0.4, average=False), (x, y))


def test_uniformity_is_stable() -> None:
    # All pairs so far apart that their kernel underflows.
    x = torch.eye(3, requires_grad=True)
    value = uniformity(x, t=1000.0)
    value.backward()
    assert float(value.detach()) == pytest.approx(-2000.0)
    assert torch.isfinite(x.grad).all()
    same = torch.ones(4, 3, requires_grad=True)
    value = uniformity(same)
    value.backward()
    assert float(value.detach()) == pytest.approx(0.0, abs=1e-6)
    assert torch.isfinite(same.grad).all()


def test_degenerate_batches() -> None:
    for n in (0, 1):
        x = torch.randn(n, 3, requires_grad=True)
        loss = DirectAULoss()(x, torch.randn(n, 3))
        loss.backward()
        assert torch.isfinite(loss)
        assert torch.isfinite(x.grad).all()
        assert float(uniformity(x.detach())) == 0.0
    zero = torch.zeros(3, 2, requires_grad=True)
    DirectAULoss()(zero, torch.randn(3, 2)).backward()
    assert torch.isfinite(zero.grad).all()


def test_half_precision_is_normalized_in_float32() -> None:
    x = torch.randn(6, 8) * 1e-4
    assert float(uniformity(x.half())) == pytest.approx(float(uniformity(x.half().float())), rel=1e-6)
    with torch.autocast('cpu', torch.bfloat16):
        assert float(uniformity(x)) == pytest.approx(float(uniformity(x)), rel=1e-6)
        value = float(uniformity(x))
    assert value == pytest.approx(dense_uniformity(x, 2.0), rel=1e-4)


def test_gradient_of_uniformity_under_autocast() -> None:
    x = (torch.randn(1, 64) + 0.05 * torch.randn(256, 64)).requires_grad_()
    with torch.autocast('cpu', torch.bfloat16):
        (grad,) = torch.autograd.grad(uniformity(x), x)
    (expected,) = torch.autograd.grad(uniformity(x.double()), x)
    assert float((grad - expected).norm()) < 1e-4 * float(expected.norm())


def test_bad_arguments() -> None:
    x = torch.randn(3, 2)
    with pytest.raises(ValueError, match=r'y: got shape \[2, 2\]; accepted: that of x, \[3, 2\]'):
        alignment(x, x[:2])
    with pytest.raises(ValueError, match=r't: got 0; accepted: finite numbers above 0'):
        uniformity(x, 0)
    with pytest.raises(ValueError, match=r't: got -1'):
        DirectAULoss(t=-1)
    for t in (math.nan, math.inf):
        with pytest.raises(ValueError, match=f't: got {t}'):
            DirectAULoss(t=t)
    for weight in (-0.1, math.nan, math.inf):
        with pytest.raises(ValueError, match=f'weight: got {weight}; accepted: finite numbers from 0'):
            DirectAULoss(weight)


def test_repr() -> None:
    assert repr(DirectAULoss(0.5, 1.0, False)) == 'DirectAULoss(weight=0.5, t=1.0, average=False)'
