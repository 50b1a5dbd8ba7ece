r"""The metrics of an epoch, computed by GraphGym, and the metric that selects the best epoch."""

from __future__ import annotations

import json
import warnings
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch_geometric.graphgym import register
from torch_geometric.graphgym.config import cfg
from torch_geometric.graphgym.logger import Logger, infer_task

from pyg_topomask.apps.runs.devices import gather, rank
from pyg_topomask.apps.runs.host_copy import HostCopy
from pyg_topomask.apps.runs.run import Row
from pyg_topomask.apps.train.labelled import labelled_samples, regression_scores, some_missing
from pyg_topomask.graphgym.names.lookup import lookup
from pyg_topomask.graphgym.names.objectives import METRICS_OF_GRAPHGPS
from pyg_topomask.utils.checks import check_choice
from pyg_topomask.utils.files import write_atomically

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
    known = [*(['auto'] if _automatic() in metrics else []), *sorted(metrics)]
    check_choice(known, metric_best=cfg.metric_best)


def higher_is_better(metric: str) -> bool:
    r"""Returns whether larger values of a metric are better."""
    return metric not in LOWER_IS_BETTER and cfg.metric_agg != 'argmin'


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
        self._batches: list[tuple[HostCopy, dict[str, float]]] = []

    def update(self, true: Tensor, pred: Tensor, loss: Tensor, lr: float, seconds: float) -> None:
        r"""Adds the labels, the prediction scores, the mean loss, the learning rate and the time of a batch."""
        self._batches.append((HostCopy(true, pred, loss), {'lr': lr, 'time_used': seconds}))

    def finish(self, epoch: int | None = None) -> Row:
        r"""Returns the metrics of the collected predictions and clears them; empty without predictions. If an epoch is given,
        they are also written to GraphGym's :obj:`stats.json` and, with :obj:`cfg.tensorboard_each_run`, to TensorBoard. All
        processes must call this.
        """
        read: list[dict[str, Any]] = [
            {'true': true, 'pred': pred, 'loss': float(loss), **numbers}
            for copy, numbers in self._batches
            for true, pred, loss in [copy.read()]
        ]
        batches = [batch for batches in gather(read) for batch in batches]
        self._batches = []
        counts = [int((~batch['true'].isnan()).sum()) for batch in batches]
        if sum(counts) == 0:
            return {}
        with warnings.catch_warnings():
            warnings.filterwarnings('ignore', message='.* is ill-defined')  # 0 if a class is never predicted
            return self._row(batches, counts, epoch)

    def _row(self, batches: list[dict[str, Any]], counts: list[int], epoch: int | None) -> Row:
        logger = self.logger
        logger.reset()
        for batch in batches:
            logger.update_stats(**batch, params=cfg.params)
        loss = sum(batch['loss'] * count for batch, count in zip(batches, counts, strict=True)) / sum(counts)
        logger['_loss'] = loss * logger['_size_current']
        if cfg.custom_metrics:
            scores = {
                name: lookup('custom_metrics', name, register.metric_dict)(logger['_true'], logger['_pred'], self.task)
                for name in cfg.custom_metrics
            }
        else:
            logger['_true'], logger['_pred'] = labelled_samples(logger['_true'], logger['_pred'])
            true = torch.cat(logger['_true'])
            if self.task == 'regression' and some_missing(true):
                scores = regression_scores(true, torch.cat(logger['_pred']))
            else:
                scores = getattr(Logger, self.task)(logger) if hasattr(Logger, self.task) else {}
            scores = {**scores, **self._scores_of_graphgps()}
            logger[logger.task_type] = lambda: scores  # which write_epoch would compute again
        row = {f'{logger.name}_{name}': float(value) for name, value in {'loss': loss, **scores}.items()}
        if epoch is not None and rank() == 0:
            logger.write_epoch(epoch)
        return row

    def _scores_of_graphgps(self) -> dict[str, float]:
        r"""Returns the metrics of GraphGPS for several labels, or :obj:`cfg.metric_best` if it is one that GraphGym lacks."""
        known, batches = METRICS_OF_GRAPHGPS.get(self.task, {}), (self.logger['_true'], self.logger['_pred'])
        names = [name for name in known if name in (*METRICS[self.task], cfg.metric_best)]
        return {name: round(known[name](*batches, self.task), cfg.round) for name in names}

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
