"""Losses under the names that GraphGPS registers."""

import torch.nn.functional as F
from torch import Tensor
from torch_geometric.graphgym.config import cfg
from torch_geometric.graphgym.register import register_loss


@register_loss('l1_losses')
def l1_losses(pred: Tensor, true: Tensor) -> tuple[Tensor, Tensor] | None:
    return (F.l1_loss(pred, true.view_as(pred)), pred) if cfg.model.loss_fun == 'l1' else None


@register_loss('weighted_cross_entropy')
def weighted_cross_entropy(pred: Tensor, true: Tensor) -> tuple[Tensor, Tensor] | None:
    return (F.cross_entropy(pred, true), pred) if cfg.model.loss_fun == 'weighted_cross_entropy' else None


@register_loss('multilabel_cross_entropy')
def multilabel_cross_entropy(pred: Tensor, true: Tensor) -> tuple[Tensor, Tensor] | None:
    if cfg.dataset.task_type != 'classification_multilabel':
        return None
    return F.binary_cross_entropy_with_logits(pred, true), pred
