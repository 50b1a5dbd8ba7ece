from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from grids import covering
from torch.optim.lr_scheduler import ReduceLROnPlateau
from torch_geometric.graphgym.config import cfg

from pyg_topomask.apps.train.module import create_optimizer, create_scheduler


def parameters() -> list[torch.nn.Parameter]:
    return [torch.nn.Parameter(torch.ones(2)), torch.nn.Parameter(torch.ones(2), requires_grad=False)]


@pytest.mark.parametrize(
    ('name', 'kind'),
    [('adam', torch.optim.Adam), ('sgd', torch.optim.SGD), ('adamW', torch.optim.AdamW), ('adagrad', torch.optim.Adagrad)],
)
def test_optimizers(configure: Callable[..., None], name: str, kind: type) -> None:
    configure(f'optim.optimizer {name} optim.base_lr 0.25 optim.weight_decay 0.125')
    optimizer = create_optimizer(iter(parameters()))
    assert type(optimizer) is kind
    (group,) = optimizer.param_groups
    assert (group['lr'], group['weight_decay'], len(group['params'])) == (0.25, 0.125, 1)


def rates(name: str, epochs: int = 10) -> list[float]:
    optimizer = create_optimizer(parameters())
    scheduler = create_scheduler(optimizer)
    result = []
    for _ in range(epochs):
        result.append(optimizer.param_groups[0]['lr'])
        optimizer.step()
        if isinstance(scheduler, ReduceLROnPlateau):
            scheduler.step(1.0)  # never improves
        else:
            scheduler.step()
    return result


@pytest.mark.parametrize(
    ('name', 'expected'),
    [
        ('none', [1.0] * 10),
        ('step', [1, 1, 0.5, 0.5, 0.25, 0.25, 0.25, 0.25, 0.25, 0.25]),
        ('plateau', [1, 1, 1, 1, 0.5, 0.5, 0.5, 0.25, 0.25, 0.25]),
        ('reduce_on_plateau', [1, 1, 1, 1, 0.25, 0.25, 0.25, 0.125, 0.125, 0.125]),
        ('linear_with_warmup', [0.5, 1, 1, 0.875, 0.75, 0.625, 0.5, 0.375, 0.25, 0.125]),
        ('polynomial_with_warmup', [0.5, 1, 1, 0.875, 0.75, 0.625, 0.5, 0.375, 0.25, 0.125]),
        ('cosine_with_warmup', [0.5, 1, 1, 0.962, 0.854, 0.691, 0.5, 0.309, 0.146, 0.038]),
        ('cos', [1, 0.976, 0.905, 0.794, 0.655, 0.5, 0.345, 0.206, 0.095, 0.024]),
    ],
)
def test_schedules(configure: Callable[..., None], name: str, expected: list[float]) -> None:
    configure(
        f'optim.optimizer sgd optim.scheduler {name} optim.base_lr 1.0 optim.max_epoch 10 optim.num_warmup_epochs 2 '
        'optim.steps [2,4] optim.lr_decay 0.5 optim.reduce_factor 0.25 optim.schedule_patience 2 optim.min_lr 0.125'
    )
    assert rates(name) == pytest.approx(expected, abs=1e-3)


@pytest.mark.parametrize(
    ('warmup', 'name'), covering([0, 1, 5, 50], ['linear_with_warmup', 'polynomial_with_warmup', 'cosine_with_warmup'])
)
def test_no_epoch_has_a_rate_of_zero(configure: Callable[..., None], name: str, warmup: int) -> None:
    configure(f'optim.scheduler {name} optim.base_lr 1.0 optim.max_epoch 50 optim.num_warmup_epochs {warmup}')
    assert min(rates(name, 50)) > 0
    assert max(rates(name, 50)) == 1.0


def test_unknown_names(configure: Callable[..., None]) -> None:
    configure('optim.optimizer nonsense optim.scheduler nonsense')
    with pytest.raises(ValueError, match=r"^optim.optimizer: got 'nonsense'; accepted: adagrad, adam, adamW, sgd"):
        create_optimizer(parameters())
    cfg.optim.optimizer = 'adam'
    with pytest.raises(ValueError, match=r"^optim.scheduler: got 'nonsense'; accepted: cos, cosine_with_warmup"):
        create_scheduler(create_optimizer(parameters()))
