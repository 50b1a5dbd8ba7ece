"""Losses and metrics of GraphGym that this package registers."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch_geometric.graphgym import register
from torch_geometric.graphgym.config import cfg, set_cfg
from torch_geometric.graphgym.loss import compute_loss

import pyg_topomask.graphgym.names.objectives  # noqa: F401


def test_weighted_cross_entropy() -> None:
    set_cfg(cfg)
    cfg.model.loss_fun = 'weighted_cross_entropy'
    pred, true = torch.randn(20, 4, dtype=torch.float64), torch.tensor([0] * 12 + [1] * 5 + [3] * 3)
    loss, score = compute_loss(pred, true)
    logarithm = pred.numpy() - np.log(np.exp(pred.numpy()).sum(1, keepdims=True))
    weight = np.array([8 / 20, 15 / 20, 0, 17 / 20])[true.numpy()]
    assert loss.item() == pytest.approx(-(weight * logarithm[np.arange(20), true.numpy()]).sum() / weight.sum())
    np.testing.assert_allclose(score.numpy(), logarithm)
    single, _ = compute_loss(pred, torch.zeros(20, dtype=torch.long))
    assert single.item() == pytest.approx(-logarithm[:, 0].mean())
    binary, probability = compute_loss(pred[:, 0], (true > 0).long())
    share = np.where(true.numpy() > 0, 12 / 20, 8 / 20)
    sign = np.where(true.numpy() > 0, 1, -1)
    assert binary.item() == pytest.approx((share * np.log1p(np.exp(-sign * pred[:, 0].numpy()))).mean())
    torch.testing.assert_close(probability, pred[:, 0].sigmoid())


def test_metrics() -> None:
    metrics = pytest.importorskip('sklearn.metrics')
    generator = torch.Generator().manual_seed(0)
    true = [torch.randint(4, (n,), generator=generator) for n in (7, 9)]
    pred = [torch.randn(n, 6, generator=generator) for n in (7, 9)]
    label, predicted = torch.cat(true).numpy(), torch.cat(pred).argmax(1).numpy()
    assert register.metric_dict['macro_f1'](true, pred, '') == pytest.approx(
        metrics.f1_score(label, predicted, average='macro')
    )
    assert register.metric_dict['mean_iou'](true, pred, '') == pytest.approx(
        metrics.jaccard_score(label, predicted, average='macro')
    )
    binary, chances = [torch.tensor([[1.0], [0.0], [1.0]])], [torch.tensor([[0.7], [0.8], [0.2]])]
    expected = metrics.f1_score([1, 0, 1], [1, 1, 0], average='macro')
    for labels in (binary, [torch.tensor([1, 0, 1])]):
        assert register.metric_dict['macro_f1'](labels, chances, '') == pytest.approx(expected)
    for labels in ([torch.zeros(3, 2)], [torch.tensor([-1, 0, 1])], [torch.zeros(2)]):
        with pytest.raises(ValueError, match=r'^custom_metrics: got .*macro_f1 or mean_iou.*; accepted: labels'):
            register.metric_dict['mean_iou'](labels, chances, '')
    tasks = [torch.tensor([[1.0, 0, 1], [0, 0, 1]]), torch.tensor([[1.0, 1, 1]])]
    scores = [torch.rand(2, 3, generator=generator), torch.rand(1, 3, generator=generator)]
    both = [metrics.average_precision_score(torch.cat(tasks)[:, t], torch.cat(scores)[:, t]) for t in (0, 1)]
    assert register.metric_dict['average_precision'](tasks, scores, '') == pytest.approx(np.mean(both))


def test_average_precision_of_several_classes_is_refused() -> None:
    scores = [torch.rand(4, 3)]
    with pytest.raises(ValueError, match=r'average_precision for labels of shape \[4, 1\] and scores of shape \[4, 3\]'):
        register.metric_dict['average_precision']([torch.tensor([0, 1, 2, 1])], scores, '')
