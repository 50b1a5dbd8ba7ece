r"""Losses and metrics of configurations of GraphGPS and of the k-MIP authors that GraphGym lacks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch_geometric.graphgym import register
from torch_geometric.graphgym.config import cfg

from pyg_topomask.errors import ArgumentError


def weighted_cross_entropy(pred: Tensor, true: Tensor) -> tuple[Tensor, Tensor] | None:
    r"""GraphGPS's weighted cross-entropy, for :obj:`model.loss_fun: weighted_cross_entropy`: a class with :math:`n_c` of
    :math:`n` labels in the batch has the weight :math:`1 - n_c / n`. Scores are :obj:`[n, classes]`, or :obj:`[n]` of the
    second of two classes, and labels are :obj:`[n]`.
    """
    if cfg.model.loss_fun != 'weighted_cross_entropy':
        return None
    share = torch.bincount(true.long(), minlength=max(pred.size(1) if pred.dim() > 1 else 2, 2)) / max(true.numel(), 1)
    weight = torch.where(share > 0, 1 - share, 0).to(pred.dtype)
    if int((share > 0).sum()) == 1:
        weight = torch.ones_like(weight)  # otherwise, the weight of a batch with one class would be 0
    if pred.dim() > 1:
        score = F.log_softmax(pred, dim=-1)
        return F.nll_loss(score, true, weight=weight), score
    loss = F.binary_cross_entropy_with_logits(pred, true.to(pred.dtype), weight=weight[true.long()])
    return loss, pred.sigmoid()


def l1(pred: Tensor, true: Tensor) -> tuple[Tensor, Tensor] | None:
    r"""GraphGPS's mean absolute error, for :obj:`model.loss_fun: l1`."""
    return (F.l1_loss(pred, true.to(pred.dtype)), pred) if cfg.model.loss_fun == 'l1' else None


def _labels(true: list[Tensor], pred: list[Tensor]) -> tuple[Any, Any]:
    r"""Returns the labels and the predicted labels as arrays."""
    label, scores = torch.cat(true), torch.cat(pred)
    label, scores = (t.squeeze(1) if t.dim() > 1 and t.size(1) == 1 else t for t in (label, scores))
    if label.dim() == 1 and label.size(0) == scores.size(0):
        label, scores = label[~label.isnan()], scores[~label.isnan()]
    if label.dim() > 1 or label.size(0) != scores.size(0):
        given = f'macro_f1 or mean_iou for labels of shape {list(label.shape)} and scores of shape {list(scores.shape)}'
        raise ArgumentError('custom_metrics', given, 'labels [n], of one task')
    if bool((label < 0).any()):
        raise ArgumentError('custom_metrics', f'the label {int(label.min())} for macro_f1 or mean_iou', 'labels from 0')
    predicted = scores.argmax(-1) if scores.dim() > 1 else (scores > 0.5).long()
    return label.long().cpu().numpy(), predicted.cpu().numpy()


def macro_f1(true: list[Tensor], pred: list[Tensor], task_type: str) -> float:
    r"""The F1 score, averaged over the classes, for :obj:`custom_metrics: [macro_f1]`."""
    from sklearn.metrics import f1_score

    return float(f1_score(*_labels(true, pred), average='macro'))


def mean_iou(true: list[Tensor], pred: list[Tensor], task_type: str) -> float:
    r"""Intersection over union, averaged over the classes, for :obj:`custom_metrics: [mean_iou]`."""
    from sklearn.metrics import jaccard_score

    return float(jaccard_score(*_labels(true, pred), average='macro'))


def average_precision(true: list[Tensor], pred: list[Tensor], task_type: str) -> float:
    r"""The average precision over the labels that are not NaN, averaged over the tasks with both labels as in the evaluators of
    OGB, for :obj:`custom_metrics: [average_precision]`. Scores and the labels 0 and 1 are :obj:`[n]` or :obj:`[n, tasks]`.
    """
    from sklearn.metrics import average_precision_score

    return _mean_over_tasks('average_precision', average_precision_score, true, pred)


def _mean_over_tasks(name: str, metric: Callable[..., float], true: list[Tensor], pred: list[Tensor]) -> float:
    labels, scores = torch.cat(true), torch.cat(pred)
    labels, scores = labels.view(labels.size(0), -1), scores.view(scores.size(0), -1)
    if labels.shape != scores.shape:
        given = f'{name} for labels of shape {list(labels.shape)} and scores of shape {list(scores.shape)}'
        raise ArgumentError('custom_metrics', given, 'equal shapes, of tasks with the labels 0 and 1')
    both = ((labels == 0).any(0) & (labels == 1).any(0)).nonzero().flatten()
    known = ~labels.isnan()
    if bool(scores.isnan().any()):
        return float('nan')
    scores = scores.nan_to_num()  # infinite ones are the largest and the smallest
    values = [metric(*(t[known[:, task], task].numpy() for t in (labels, scores))) for task in both]
    return float(sum(values) / len(values)) if values else float('nan')


def mean_recall(true: list[Tensor], pred: list[Tensor], task_type: str) -> float:
    r"""The recall, averaged over the classes of the labels and of the predictions: GraphGPS's :obj:`accuracy-SBM`."""
    from sklearn.metrics import recall_score

    return float(recall_score(*_labels(true, pred), average='macro', zero_division=0))


def mean_auc(true: list[Tensor], pred: list[Tensor], task_type: str) -> float:
    r"""The area under the ROC curve over the labels that are not NaN, averaged over the tasks with both labels."""
    from sklearn.metrics import roc_auc_score

    return _mean_over_tasks('auc', roc_auc_score, true, pred)


def hits_at(count: int) -> Callable[..., float]:
    r"""Returns OGB's :obj:`hits@K` of edges: the share of samples with the label 1 whose score is above the K-th largest one of
    those with the label 0, or 1 if there are fewer than K of these.
    """

    def hits(true: list[Tensor], pred: list[Tensor], task_type: str) -> float:
        label, score = torch.cat(true).flatten(), torch.cat(pred).flatten()
        linked, others = score[label == 1], score[label == 0]
        return 1.0 if others.numel() < count else float((linked > others.topk(count).values[-1]).float().mean())

    return hits


#: Names of GraphGPS and OGB of metrics that GraphGym lacks, by task.
METRICS_OF_GRAPHGPS: dict[str, dict[str, Callable[..., float]]] = {
    'classification_binary': {
        'accuracy-SBM': mean_recall,
        'ap': average_precision,
        'auc': mean_auc,
        **{f'hits@{count}': hits_at(count) for count in (20, 50, 100)},
    },
    'classification_multi': {'accuracy-SBM': mean_recall, 'f1': macro_f1, 'mIoU': mean_iou},
    'classification_multilabel': {'ap': average_precision, 'auc': mean_auc},
}
register.loss_dict.setdefault('topomask_weighted_cross_entropy', weighted_cross_entropy)
register.loss_dict.setdefault('topomask_l1', l1)
for _metric in (macro_f1, mean_iou, average_precision):
    register.metric_dict.setdefault(_metric.__name__, _metric)
