r"""The loss and metrics of samples of which some have no label, which is NaN."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor
from torch_geometric.graphgym import register
from torch_geometric.graphgym.config import cfg
from torch_geometric.graphgym.loss import compute_loss


def own_losses() -> list[Callable[..., Any]]:
    r"""Returns the losses that the user has registered, which may take any labels."""
    return [loss for name, loss in register.loss_dict.items() if not name.startswith('topomask_')]


def some_missing(true: Tensor) -> bool:
    r"""Returns whether some labels are NaN. Nothing is read of whole numbers."""
    return true.is_floating_point() and bool(true.isnan().any())


def labelled_loss(pred: Tensor, true: Tensor) -> tuple[Tensor, Tensor]:
    r"""Returns GraphGym's mean loss over the labels that are not NaN, as in the examples of OGB, and the scores of all samples.
    Without labels, the loss is 0. A loss that the user has registered gets all labels.
    """
    if not true.is_floating_point():
        loss, score = compute_loss(pred, true)
        return loss if true.numel() > 0 else loss.nan_to_num(), score
    pred, true = (t.squeeze(-1) if t.dim() > 1 else t for t in (pred, true))
    for own in own_losses():
        if (value := own(pred, true)) is not None:
            return value
    known = ~true.isnan()
    label = true.masked_fill(~known, 0)
    label = label.long() if pred.dim() > label.dim() else label
    loss, score = compute_loss(pred, label)
    if not bool(known.all()):
        loss, _ = compute_loss(pred[known], label[known])
    return loss if bool(known.any()) else loss.nan_to_num(), score


def labelled_samples(true: list[Tensor], pred: list[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
    r"""Returns the labels and scores of batches without the samples that have no label at all."""
    known = [~(label.isnan() if label.dim() == 1 else label.isnan().flatten(1).all(1)) for label in true]
    return [t[k] for t, k in zip(true, known, strict=True)], [t[k] for t, k in zip(pred, known, strict=True)]


def regression_scores(true: Tensor, pred: Tensor) -> dict[str, float]:
    r"""Returns GraphGym's metrics of a regression over the labels that are not NaN, averaged over the tasks, given labels and
    predictions :obj:`[n]` or :obj:`[n, tasks]`.
    """
    error = (true - pred.view_as(true)).double().view(true.size(0), -1)
    mae, mse = (float(e.nanmean(0).nanmean()) for e in (error.abs(), error.square()))
    return {name: round(value, cfg.round) for name, value in {'mae': mae, 'mse': mse, 'rmse': mse**0.5}.items()}
