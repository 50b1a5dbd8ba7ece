r"""The loss and the metrics of an epoch, computed by GraphGym, and the metric that selects the best epoch."""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch_geometric.graphgym import register
from torch_geometric.graphgym.config import cfg
from torch_geometric.graphgym.logger import Logger, infer_task
from torch_geometric.graphgym.loss import compute_loss

from pyg_topomask.apps.runs.devices import HostCopy, gather, rank
from pyg_topomask.apps.runs.run import Row
from pyg_topomask.graphgym.names.heads import RANKS
from pyg_topomask.graphgym.names.lookup import lookup
from pyg_topomask.graphgym.names.objectives import METRICS_OF_GRAPHGPS
from pyg_topomask.utils.checks import check_choice
from pyg_topomask.utils.files import write_atomically


def own_losses() -> list[Callable[..., Any]]:
    r"""Returns the losses that the user has registered, which may take any labels."""
    return [loss for name, loss in register.loss_dict.items() if not name.startswith('topomask_')]


def scores_are_sigmoids(pred: Tensor) -> bool:
    r"""Returns whether scores are sigmoids of predictions, as in GraphGym for two classes. Metrics of their order are computed
    from the predictions: in float32, sigmoids of all numbers above 17 are 1.
    """
    losses, single = ('cross_entropy', 'weighted_cross_entropy'), pred.dim() == 1 or pred.size(1) == 1
    return single and infer_task() == 'classification_binary' and cfg.model.loss_fun in losses and not own_losses()


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
    return {'mae': mae, 'mse': mse, 'rmse': mse**0.5}


LOWER_IS_BETTER = ('loss', 'mae', 'mse', 'rmse')

#: The default metrics of GraphGym, and of GraphGPS for several labels, by task.
METRICS = {
    'classification_binary': ('accuracy', 'precision', 'recall', 'f1', 'auc'),
    'classification_multi': ('accuracy',),
    'classification_multilabel': tuple(METRICS_OF_GRAPHGPS['classification_multilabel']),
    'regression': ('mae', 'mse', 'rmse'),
}


def metric_best() -> str:
    r"""Returns the name of the metric that selects the best epoch, :obj:`cfg.metric_best`."""
    return _automatic() if cfg.metric_best == 'auto' else str(cfg.metric_best)


def _automatic() -> str:
    return {'regression': 'mae', 'classification_multilabel': 'ap'}.get(cfg.dataset.task_type, 'accuracy')


def check_metric_best() -> None:
    r"""Raises an error unless :obj:`cfg.metric_best`, or what :obj:`auto` selects, is a metric of the data with the sizes in
    :obj:`cfg.share`.
    """
    metrics = {'loss', *(cfg.custom_metrics or (*METRICS[infer_task()], *METRICS_OF_GRAPHGPS.get(infer_task(), ())))}
    if cfg.gnn.head == 'inductive_edge' and infer_task() == 'classification_binary' and not cfg.custom_metrics:
        metrics |= {*RANKS}
    known = [*(['auto'] if _automatic() in metrics else []), *sorted(metrics)]
    check_choice(known, metric_best=cfg.metric_best)


def higher_is_better(metric: str) -> bool:
    r"""Returns whether larger values of a metric are better."""
    return metric not in LOWER_IS_BETTER and cfg.metric_agg != 'argmin'


@contextmanager
def _unrounded() -> Iterator[None]:
    r"""Keeps GraphGym from rounding metrics, by which the best epoch is chosen, to :obj:`cfg.round` digits."""
    digits, cfg.round = cfg.round, sys.float_info.dig
    try:
        yield
    finally:
        cfg.round = digits


class EpochMeter:
    r"""Collects the predictions of all processes in one epoch on one split, and computes metrics with GraphGym's logger."""

    def __init__(self, split: str) -> None:
        self.task = infer_task()
        # GraphGym's logger has no metrics of several labels, which replace its own.
        several = self.task == 'classification_multilabel' and not cfg.custom_metrics
        try:
            self.logger = Logger(split, 'classification_multi' if several else self.task)
        except ImportError as error:
            hint = 'install pyg_topomask with its extra [graphgym]'
            raise ImportError(f'tensorboard_each_run: True needs tensorboardX: {hint}') from error
        self._batches: list[tuple[HostCopy, dict[str, float], list[str]]] = []

    def update(
        self, true: Tensor, pred: Tensor, loss: Tensor, lr: float, seconds: float, measured: dict[str, Tensor] | None = None
    ) -> None:
        r"""Adds the labels, the scores or what they are sigmoids of, the mean loss, the learning rate and the time of a batch,
        and what its head has measured by name, numbers of which a row has the mean, 0 if there are none.
        """
        copies = HostCopy(true, pred, loss, *(measured or {}).values())
        self._batches.append((copies, {'lr': lr, 'time_used': seconds}, [*(measured or {})]))

    def finish(self, epoch: int | None = None) -> Row:
        r"""Returns the metrics of the collected predictions and clears them; empty without predictions. If an epoch is given,
        they are also written to GraphGym's :obj:`stats.json` and, with :obj:`cfg.tensorboard_each_run`, to TensorBoard. All
        processes must call this.
        """
        read: list[dict[str, Any]] = [
            {'true': true, 'pred': pred, 'loss': float(loss), **numbers, 'measured': dict(zip(names, measured, strict=True))}
            for copy, numbers, names in self._batches
            for true, pred, loss, *measured in [copy.read()]
        ]
        batches = [batch for batches in gather(read) for batch in batches]
        self._batches = []
        counts = [int((~batch['true'].isnan()).sum()) for batch in batches]
        if sum(counts) == 0:
            return {}
        loss = sum(batch['loss'] * count for batch, count in zip(batches, counts, strict=True)) / sum(counts)
        with warnings.catch_warnings(), _unrounded():
            warnings.filterwarnings('ignore', message='.* is ill-defined')  # 0 if a class is never predicted
            scores = self._scores(batches, loss)
        logger = self.logger
        if epoch is not None and rank() == 0:
            # Which write_epoch would compute again.
            logger[logger.task_type] = lambda: {name: round(value, cfg.round) for name, value in scores.items()}
            logger.write_epoch(epoch)
        # Sums of other orders differ in the last digits, which choose no best epoch.
        return {f'{logger.name}_{name}': float(f'{value:.12g}') for name, value in {'loss': loss, **scores}.items()}

    def _scores(self, batches: list[dict[str, Any]], loss: float) -> dict[str, float]:
        logger = self.logger
        logger.reset()
        measured = [batch.pop('measured') for batch in batches]
        ordered = [batch['pred'].float() for batch in batches]
        of_sigmoids = scores_are_sigmoids(ordered[0])
        for batch in batches:
            if of_sigmoids:
                batch['pred'] = batch['pred'].float().sigmoid()
            logger.update_stats(**batch, params=cfg.params)
        logger['_loss'] = loss * logger['_size_current']
        if cfg.custom_metrics:
            return {
                name: lookup('custom_metrics', name, register.metric_dict)(logger['_true'], logger['_pred'], self.task)
                for name in cfg.custom_metrics
            }
        _, ordered = labelled_samples(logger['_true'], ordered)
        logger['_true'], logger['_pred'] = labelled_samples(logger['_true'], logger['_pred'])
        true = torch.cat(logger['_true'])
        scores: dict[str, float] = {}
        if self.task == 'regression' and true.is_floating_point() and bool(true.isnan().any()):
            scores = regression_scores(true, torch.cat(logger['_pred']))
        elif hasattr(Logger, self.task):
            scores = getattr(Logger, self.task)(logger)
        # Those of GraphGPS for several labels, or metric_best if it is one that GraphGym lacks.
        for name, metric in METRICS_OF_GRAPHGPS.get(self.task, {}).items():
            if name == 'auc' and self.task == 'classification_binary' and not of_sigmoids:
                continue  # that of GraphGym
            if name in (*METRICS[self.task], cfg.metric_best):
                scores[name] = metric(logger['_true'], logger['_pred'] if name == 'accuracy-SBM' else ordered, self.task)
        for name in measured[0]:
            scores[name] = float(torch.cat([batch[name] for batch in measured]).mean().nan_to_num())
        return scores

    def close(self) -> None:
        r"""Closes the TensorBoard writer, if any."""
        self.logger.close()


def truncate_stats(path: Path, epochs: int) -> None:
    r"""Removes lines from GraphGym's :obj:`stats.json` that a killed process wrote after the last checkpoint, which has the
    given number of epochs, and incomplete lines. The file may be absent.
    """
    if not path.exists():
        return
    kept = []
    # An unfinished line.
    for line in path.read_text(errors='replace').split('\n')[:-1]:
        with suppress(ValueError, TypeError, KeyError):
            if json.loads(line)['epoch'] < epochs:
                kept.append(f'{line}\n')
    write_atomically(path, ''.join(kept).encode())
