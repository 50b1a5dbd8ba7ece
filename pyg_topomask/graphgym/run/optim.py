r"""Optimizers and learning rate schedules that GraphGPS's configurations name, for use without GraphGPS."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from torch.nn import Parameter
from torch.optim import Adagrad, AdamW, Optimizer
from torch.optim.lr_scheduler import LRScheduler, ReduceLROnPlateau
from torch_geometric.graphgym import register
from torch_geometric.graphgym.config import cfg, from_config
from torch_geometric.nn.lr_scheduler import CosineWithWarmupLR, LinearWithWarmupLR, PolynomialWithWarmupLR

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


def linear_with_warmup(optimizer: Optimizer, num_warmup_epochs: int, max_epoch: int) -> LinearWithWarmupLR:
    return LinearWithWarmupLR(optimizer, num_warmup_epochs, max_epoch)


def cosine_with_warmup(optimizer: Optimizer, num_warmup_epochs: int, max_epoch: int) -> CosineWithWarmupLR:
    return CosineWithWarmupLR(optimizer, num_warmup_epochs, max_epoch)


def polynomial_with_warmup(optimizer: Optimizer, num_warmup_epochs: int, max_epoch: int) -> PolynomialWithWarmupLR:
    return PolynomialWithWarmupLR(optimizer, num_warmup_epochs, max_epoch)


#: Used for names that nobody registered; GraphGPS registers these itself.
OPTIMIZERS: dict[str, Callable[..., Optimizer]] = {'adamW': adamw, 'adagrad': adagrad}
SCHEDULERS: dict[str, Callable[..., LRScheduler]] = {
    'plateau': plateau,
    'reduce_on_plateau': reduce_on_plateau,
    'linear_with_warmup': linear_with_warmup,
    'cosine_with_warmup': cosine_with_warmup,
    'polynomial_with_warmup': polynomial_with_warmup,
}


def create_optimizer(params: Iterable[Parameter]) -> Optimizer:
    r"""Creates the optimizer :obj:`cfg.optim.optimizer`.

    Args:
        params (iterable): The parameters to optimize.
    """
    create = lookup('optim.optimizer', cfg.optim.optimizer, register.optimizer_dict, OPTIMIZERS)
    optimizer: Optimizer = from_config(create)([p for p in params if p.requires_grad], cfg=cfg.optim)
    return optimizer


def create_scheduler(optimizer: Optimizer) -> Any:
    r"""Creates the schedule :obj:`cfg.optim.scheduler`, which is to be stepped once per epoch.

    Args:
        optimizer (torch.optim.Optimizer): The optimizer.
    """
    create = lookup('optim.scheduler', cfg.optim.scheduler, register.scheduler_dict, SCHEDULERS)
    return from_config(create)(optimizer, cfg=cfg.optim)
