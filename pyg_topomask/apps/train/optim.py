r"""Optimizers and learning rate schedules of GraphGPS's configurations, for use without GraphGPS."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

from torch.nn import Parameter
from torch.optim import Adagrad, AdamW, Optimizer
from torch.optim.lr_scheduler import LambdaLR, LRScheduler, ReduceLROnPlateau
from torch_geometric.graphgym import register
from torch_geometric.graphgym.config import cfg, from_config

from pyg_topomask.graphgym.names.lookup import lookup

# The argument names below are keys of `cfg.optim`: GraphGym binds one to the other.


def adamw(params: Iterable[Parameter], base_lr: float, weight_decay: float) -> AdamW:
    return AdamW(params, lr=base_lr, weight_decay=weight_decay)


def adagrad(params: Iterable[Parameter], base_lr: float, weight_decay: float) -> Adagrad:
    return Adagrad(params, lr=base_lr, weight_decay=weight_decay)


def plateau(optimizer: Optimizer, schedule_patience: int, lr_decay: float) -> ReduceLROnPlateau:
    return ReduceLROnPlateau(optimizer, patience=schedule_patience, factor=lr_decay)


def reduce_on_plateau(optimizer: Optimizer, reduce_factor: float, schedule_patience: int, min_lr: float) -> ReduceLROnPlateau:
    return ReduceLROnPlateau(optimizer, factor=reduce_factor, patience=schedule_patience, min_lr=min_lr)


def with_warmup(optimizer: Optimizer, warmup: int, epochs: int, decay: Callable[[float], float]) -> LambdaLR:
    r"""Creates a schedule with a linear warmup to the base rate, followed by a decay to zero after the last epoch. Unlike PyG's
    schedules, which are stepped once per batch, it has no epoch with rate zero.

    Of :math:`w` warmup epochs, epoch :math:`t` has the factor :math:`(t + 1) / w`. Then :obj:`decay` is the factor as a
    function of the progress, from 0 to 1.
    """

    def factor(epoch: int) -> float:
        if epoch < warmup:
            return (epoch + 1) / warmup
        return decay(min(1.0, (epoch - warmup) / max(1, epochs - warmup)))

    return LambdaLR(optimizer, factor)


def linear_with_warmup(optimizer: Optimizer, num_warmup_epochs: int, max_epoch: int) -> LambdaLR:
    return with_warmup(optimizer, num_warmup_epochs, max_epoch, lambda progress: 1 - progress)


def cosine_with_warmup(optimizer: Optimizer, num_warmup_epochs: int, max_epoch: int) -> LambdaLR:
    return with_warmup(optimizer, num_warmup_epochs, max_epoch, lambda progress: (1 + math.cos(math.pi * progress)) / 2)


#: Used for unregistered names. GraphGPS registers these names itself.
OPTIMIZERS: dict[str, Callable[..., Optimizer]] = {'adamW': adamw, 'adagrad': adagrad}
SCHEDULERS: dict[str, Callable[..., LRScheduler]] = {
    'plateau': plateau,
    'reduce_on_plateau': reduce_on_plateau,
    'linear_with_warmup': linear_with_warmup,
    'cosine_with_warmup': cosine_with_warmup,
    'polynomial_with_warmup': linear_with_warmup,  # of power 1
}


def create_optimizer(params: Iterable[Parameter]) -> Optimizer:
    r"""Creates the optimizer :obj:`cfg.optim.optimizer`."""
    create = lookup('optim.optimizer', cfg.optim.optimizer, register.optimizer_dict, OPTIMIZERS)
    return from_config(create)([p for p in params if p.requires_grad], cfg=cfg.optim)


def create_scheduler(optimizer: Optimizer) -> Any:
    r"""Creates the schedule :obj:`cfg.optim.scheduler`. Step it once per epoch."""
    create = lookup('optim.scheduler', cfg.optim.scheduler, register.scheduler_dict, SCHEDULERS)
    return from_config(create)(optimizer, cfg=cfg.optim)
