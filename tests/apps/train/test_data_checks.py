"""Labels that are missing or do not fit, masks and batches, of data sets of the user."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pytest
import torch
from digits_run import CONFIGS
from torch import Tensor
from torch_geometric.data import Data, InMemoryDataset
from torch_geometric.graphgym import register
from torch_geometric.graphgym.config import cfg, set_cfg

from pyg_topomask.apps.train import checks, module, train
from pyg_topomask.apps.train.metrics import EpochMeter, labelled_loss, regression_scores
from pyg_topomask.errors import ArgumentError

OPTIONS = """
dataset.format mine dataset.name mine dataset.node_encoder True dataset.node_encoder_name LinearNode
dataset.edge_encoder False topomask.transforms [] gt.layer_type None+Hop gt.layers 1 gt.n_heads 2 gt.dim_hidden 8
gnn.dim_inner 8 train.batch_size 4 optim.max_epoch 2 optim.num_warmup_epochs 0 topomask.progress False
"""
MULTILABEL = """
dataset.task_type classification_multilabel custom_metrics ['average_precision'] metric_best average_precision
"""
NAN = math.nan


class Mine(InMemoryDataset):
    """Paths of up to three nodes with given labels. The first half trains, and a quarter each validates and tests."""

    def __init__(self, labels: Tensor, nodes: Mapping[int, int] | int = 3) -> None:
        super().__init__(None)
        path = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
        torch.manual_seed(0)
        graphs = []
        for index, label in enumerate(labels):
            size = nodes if isinstance(nodes, int) else nodes.get(index, 3)
            graphs.append(Data(x=torch.randn(size, 4), edge_index=path[:, : 2 * max(size - 1, 0)], y=label[None]))
        self.data, self.slices = self.collate(graphs)
        for name, index in zip(
            ('train', 'val', 'test'), np.split(np.arange(len(labels)), [len(labels) // 2, -(len(labels) // 4)]), strict=True
        ):
            self._data[f'{name}_graph_index'] = torch.from_numpy(index)
            self.slices[f'{name}_graph_index'] = torch.tensor([0, len(index)])


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., dict[str, float]]:
    def run(dataset: InMemoryDataset, options: str, config: str = 'digits') -> dict[str, float]:
        monkeypatch.setitem(register.loader_dict, 'mine', lambda format, *args: dataset if format == 'mine' else None)
        (row,) = train(CONFIGS / f'{config}.yaml', [*OPTIONS.split(), *options.split()], out=tmp_path)
        return row

    return run


def assays(samples: int = 16) -> Tensor:
    """Labels of three assays, a third of which is not measured, and all of them once."""
    labels = torch.tensor([[0.0, 1, NAN], [1, NAN, 0], [NAN, 0, 1]]).repeat(samples // 3 + 1, 1)[:samples]
    labels[1] = NAN
    return labels


def test_labels_that_were_not_measured(run: Callable[..., dict[str, float]], monkeypatch: pytest.MonkeyPatch) -> None:
    """The average precision of OGB 1.3.6 (ogb/graphproppred/evaluate.py, _eval_ap), over the labelled entries of the tasks that
    have both labels, and the loss of its examples (main_pyg.py), the mean over the labelled entries."""
    metrics = pytest.importorskip('sklearn.metrics')
    seen: list[tuple[Tensor, Tensor]] = []
    update = EpochMeter.update

    def recording(self: EpochMeter, true: Tensor, pred: Tensor, *args: object) -> None:
        if self.logger.name == 'test':
            seen.append((true.numpy(), pred.numpy().astype(float)))
        update(self, true, pred, *args)

    monkeypatch.setattr(EpochMeter, 'update', recording)
    row = run(Mine(assays()), MULTILABEL)
    true, score = seen[-1]
    known = ~np.isnan(true)
    expected = [metrics.average_precision_score(true[k, t], score[k, t]) for t, k in enumerate(known.T)]
    assert row['test_average_precision'] == pytest.approx(np.mean(expected))
    entropy = -np.log(np.where(true == 1, score, 1 - score))[known]
    assert row['test_loss'] == pytest.approx(entropy.mean(), rel=1e-5)


def test_the_loss_of_an_epoch_is_a_mean_over_labels(tmp_path: Path) -> None:
    set_cfg(cfg)
    cfg.share.dim_out, cfg.dataset.task_type, cfg.params, cfg.run_dir = 1, 'regression', 0, str(tmp_path)
    meter = EpochMeter('val')
    for values, loss in (([1.0, 2.0, 3.0], 1.0), ([4.0, NAN], 5.0)):
        label = torch.tensor(values)
        meter.update(label, label.nan_to_num(), torch.tensor(loss), 0.1, 0.0)
    assert meter.finish()['val_loss'] == pytest.approx((3 * 1.0 + 1 * 5.0) / 4)


@pytest.mark.parametrize('missing', [False, True])
def test_metrics_that_choose_the_best_epoch_are_not_rounded(tmp_path: Path, missing: bool) -> None:
    set_cfg(cfg)
    cfg.share.dim_out, cfg.dataset.task_type, cfg.params, cfg.run_dir = 1, 'regression', 0, str(tmp_path)
    meter, digits = EpochMeter('val'), cfg.round
    true = torch.tensor([1.0, 2.0, NAN if missing else 1.0])
    meter.update(true, torch.tensor([1.01, 2.02, 1.0]), torch.tensor(0.0), 0.1, 0.0)
    row, errors = meter.finish(0), np.array([0.01, 0.02] if missing else [0.01, 0.02, 0.0])
    expected = {'mae': errors.mean(), 'mse': np.square(errors).mean(), 'rmse': np.square(errors).mean() ** 0.5}
    assert {name: row[f'val_{name}'] for name in expected} == pytest.approx(expected, rel=1e-4)
    (line,) = (tmp_path / 'val' / 'stats.json').read_text().splitlines()
    assert {name: json.loads(line)[name] for name in expected} == {name: round(row[f'val_{name}'], digits) for name in expected}
    assert cfg.round == digits


def test_average_precision_over_labelled_entries() -> None:
    """snap-stanford/ogb#4: three labels of which one is missing. OGB 1.3.6 gives 0.6667 for the first task."""
    true = torch.tensor([[1.0, 1], [0, NAN], [NAN, 1], [0, 1], [1, NAN]])
    pred = torch.tensor([[0.2, 0.1], [0.9, 0.2], [0.99, 0.4], [0.1, 0.3], [0.8, 0.7]])
    metric = register.metric_dict['average_precision']
    # Of the positives at ranks 2 and 3 of four: (1 / 2 + 2 / 3) / 2. The second task has no negative.
    assert metric([true[:2], true[2:]], [pred[:2], pred[2:]], '') == pytest.approx((1 / 2 + 2 / 3) / 2)


def test_regression_over_labelled_entries() -> None:
    """OGB 1.3.6 (_eval_rmse): each task over its labelled entries, then the mean over the tasks."""
    set_cfg(cfg)
    true = torch.tensor([[1.0, NAN], [2.0, 3.0], [NAN, NAN]])
    pred = torch.tensor([[0.0, 9.0], [4.0, 3.5], [7.0, 7.0]])
    scores = regression_scores(true, pred)
    assert scores == pytest.approx({'mae': (1.5 + 0.5) / 2, 'mse': (2.5 + 0.25) / 2, 'rmse': (2.75 / 2) ** 0.5}, abs=1e-4)
    cfg.model.loss_fun = 'mse'
    weights = pred.clone().requires_grad_()
    loss, _ = labelled_loss(weights, true)
    assert loss.item() == pytest.approx((1 + 4 + 0.25) / 3)
    loss.backward()
    assert torch.equal(weights.grad != 0, torch.tensor([[True, False], [True, True], [False, False]]))


def test_classes_that_were_not_measured(run: Callable[..., dict[str, float]]) -> None:
    labels = torch.tensor([0.0, 2, NAN, 1, NAN, 2]).repeat(3)
    row = run(Mine(labels), '')
    assert cfg.share.dim_out == 3
    assert 0 <= row['test_accuracy'] <= 1
    assert math.isfinite(row['test_loss'])


@pytest.mark.parametrize('split', [slice(8, 12), slice(12, 16)])
def test_missing_labels_of_one_split(run: Callable[..., dict[str, float]], split: slice) -> None:
    labels = torch.randn(16, 2)
    labels[split, 1] = NAN
    row = run(Mine(labels), 'dataset.task_type regression model.loss_fun mse metric_best mae')
    assert all(map(math.isfinite, row.values()))


def test_tasks_with_one_kind_of_label_are_counted(run: Callable[..., dict[str, float]]) -> None:
    labels = assays()
    labels[8:12, 0] = NAN
    labels[8:12, 1] = 1
    with pytest.warns(
        UserWarning, match='^y: got 2 of 3 tasks without .* in the val split, which average_precision leaves out'
    ):
        run(Mine(labels), MULTILABEL)
    labels[8:12, 2] = 1
    with pytest.raises(ArgumentError, match=r'^y: got 3 of 3 tasks .* in the val split; accepted: at least one task with both'):
        run(Mine(labels), MULTILABEL)


@pytest.mark.parametrize(
    ('labels', 'options', 'message'),
    [
        (
            [1, 2, 3, 1] * 4,
            '',
            r"y: got the labels 1, 2, 3 in the train split of data set 'mine'; accepted: the classes 0 to 2",
        ),
        (
            [0, 1, 2, 0] * 3 + [0, 1, 7, 2],
            '',
            r'y: got the labels 0, 1, 2, 7 in the test split .*; accepted: the classes 0 to 3',
        ),
        ([1, 2] * 8, '', r"dataset.task_type: got 'classification', of two classes, for the labels 1, 2 in the train split"),
        ([0.0, 1] * 4 + [NAN] * 4 + [0, 1] * 2, '', r"y: got NaN for every label in the val split of data set 'mine'"),
    ],
)
def test_labels_that_do_not_fit(run: Callable[..., dict[str, float]], labels: list[float], options: str, message: str) -> None:
    """PyG's issues 8086 and 1212, with PyG 2.8.1: an IndexError in the loss in the middle of an epoch."""
    with pytest.raises(ArgumentError, match=f'^{message}'):
        run(Mine(torch.tensor(labels)), options)


def test_several_labels_that_do_not_fit(run: Callable[..., dict[str, float]]) -> None:
    labels = torch.tensor([[0.0, 1], [1, 0]]).repeat(8, 1)
    labels[9, 0] = -1  # not measured, in some files
    with pytest.raises(ArgumentError, match=r'^y: got the labels -1, 0, 1 in the val split .*; accepted: numbers from 0 to 1'):
        run(Mine(labels), MULTILABEL)


def test_features_that_are_not_finite(run: Callable[..., dict[str, float]]) -> None:
    dataset = Mine(torch.tensor([0, 1, 2, 0] * 4))
    dataset._data.x[20, 1] = NAN
    with pytest.raises(
        ArgumentError, match=r"^x: got NaN or infinite numbers in data set 'mine', first in row 20 of \[48, 4\]"
    ):
        run(dataset, '')


@pytest.mark.parametrize(
    ('x', 'message'),
    [
        (
            torch.ones(48, 4).double(),
            r'^x: got shape \[48, 4\] of torch.float64 .*; accepted: torch.float32 of .*; x.to\(torch.float32\)',
        ),
        (torch.ones(48, 4).long(), r'^x: got shape \[48, 4\] of torch.int64'),
        (torch.ones(48), r'^x: got shape \[48\] of torch.float32 .*; x.to\(torch.float32\), and x.unsqueeze'),
        (None, r"^x: got none in data set 'mine'; .*; topomask.transforms \[Constant\] adds features"),
    ],
)
def test_features_of_another_form(run: Callable[..., dict[str, float]], x: Tensor | None, message: str) -> None:
    dataset = Mine(torch.tensor([0, 1, 2, 0] * 4))
    if x is None:
        del dataset._data.x, dataset.slices['x']
        dataset._data._num_nodes, dataset._data.num_nodes = [3] * 16, 48
    else:
        dataset._data.x = x
    with pytest.raises(ArgumentError, match=message):
        run(dataset, '')


def test_graphs_without_nodes(run: Callable[..., dict[str, float]]) -> None:
    with pytest.raises(ArgumentError, match=r"^x: got no node in graph 5 of data set 'mine'; accepted: at least one"):
        run(Mine(torch.tensor([0, 1, 2, 0] * 4), {5: 0}), '')


@pytest.mark.parametrize('columns', [False, True])
def test_labels_that_no_mask_selects_are_no_classes(run: Callable[..., dict[str, float]], columns: bool) -> None:
    masks = {name: mask[:, 0] for name, mask in node_masks(1).items()}
    outside = ~torch.stack(list(masks.values())).any(0)
    labels = (torch.arange(60) // 3 % 2).masked_fill(outside, -1)
    row = run(Nodes(masks, labels[:, None] if columns else labels), f'{NODE_OPTIONS} metric_best auc', 'cora')
    assert cfg.share.dim_out == 2  # two classes, for which there is an AUC
    assert 0 <= row['test_auc'] <= 1


class Nodes(InMemoryDataset):
    """Equal graphs with masks of several splits."""

    def __init__(self, masks: dict[str, Tensor], labels: Tensor, graphs: int = 1) -> None:
        super().__init__(None)
        nodes = torch.arange(labels.size(0))
        edge_index = torch.stack([nodes, nodes.roll(1)])
        x = torch.randn(len(nodes), 4)
        self.data, self.slices = self.collate([Data(x=x, edge_index=edge_index, y=labels, **masks) for _ in range(graphs)])


def node_masks(splits: int) -> dict[str, Tensor]:
    """Node i is in the split i % 3, of 20 % of the nodes that differ in each column."""
    nodes = torch.arange(60)
    kept = (nodes[:, None] // 3) % 5 == torch.arange(splits)
    return {f'{name}_mask': (nodes % 3 == i)[:, None] & kept for i, name in enumerate(('train', 'val', 'test'))}


NODE_OPTIONS = 'dataset.node_encoder False'


def test_masks_of_several_splits(run: Callable[..., dict[str, float]], monkeypatch: pytest.MonkeyPatch) -> None:
    """GraphGPS at 28015707 (graphgps/loader/split_generator.py, setup_standard_split) takes the column dataset.split_index."""
    counted: list[Tensor] = []
    step = module.RunModule.training_step

    def recording(self: module.RunModule, batch: Data, *args: object) -> Tensor:
        counted.append(batch.train_mask)
        return step(self, batch, *args)

    monkeypatch.setattr(module.RunModule, 'training_step', recording)
    masks, labels = node_masks(4), torch.arange(60) // 3 % 3
    dataset = Nodes(dict(masks), labels)
    run(dataset, f'{NODE_OPTIONS} dataset.split_index 2', 'cora')
    assert torch.equal(counted[-1], masks['train_mask'][:, 2])
    for name, mask in masks.items():
        assert torch.equal(dataset[0][name], mask[:, 2])
    with pytest.raises(ArgumentError, match=r'^dataset.split_index: got 4; accepted: whole numbers from 0 to 3'):
        run(Nodes(dict(masks), labels), f'{NODE_OPTIONS} dataset.split_index 4 name_tag other', 'cora')
    single = {name: mask[:, 0] for name, mask in masks.items()}
    with pytest.warns(UserWarning, match='^dataset.split_index: got 1, and the data set has no masks of several splits'):
        run(Nodes(single, labels), f'{NODE_OPTIONS} dataset.split_index 1 name_tag single', 'cora')


@pytest.mark.parametrize(
    ('masks', 'message'),
    [
        ({'val_mask': torch.ones(59, dtype=torch.bool)}, r"val_mask: got shape \[59\] of torch.bool in data set 'mine'"),
        (
            {'test_mask': torch.arange(5)},
            r"test_mask: got shape \[5\] of torch.int64 in data set 'mine'; accepted: torch.bool of",
        ),
        ({'val_mask': torch.ones(60, dtype=torch.uint8)}, r'val_mask: got shape \[60\] of torch.uint8'),
        ({'test_mask': torch.zeros(60, dtype=torch.bool)}, "dataset.split: got no sample in the test split of data set 'mine'"),
    ],
)
def test_masks_that_do_not_fit(run: Callable[..., dict[str, float]], masks: dict[str, Tensor], message: str) -> None:
    single = {name: mask[:, 0] for name, mask in node_masks(1).items()}
    with pytest.raises(ArgumentError, match=f'^{message}'):
        run(Nodes(single | masks, torch.arange(60) // 3 % 3), NODE_OPTIONS, 'cora')


def test_labels_of_several_graphs_count_within_masks(run: Callable[..., dict[str, float]]) -> None:
    single = {name: mask[:, 0] for name, mask in node_masks(1).items()}
    outside = ~torch.stack(list(single.values())).any(0)
    labels = (torch.arange(60) // 3 % 3).masked_fill(outside, -1)
    row = run(Nodes(single, labels, graphs=2), NODE_OPTIONS, 'cora')
    assert math.isfinite(row['test_loss'])
    labels[single['val_mask']] = -1
    with pytest.raises(ArgumentError, match=r'^y: got the labels -1 in the val split'):
        run(Nodes(single, labels, graphs=2), f'{NODE_OPTIONS} name_tag other', 'cora')


def test_nodes_that_were_not_measured(run: Callable[..., dict[str, float]]) -> None:
    labels = torch.randn(60, 2)
    labels[::4, 0] = NAN
    single = {name: mask[:, 0] for name, mask in node_masks(1).items()}
    row = run(Nodes(single, labels), f'{NODE_OPTIONS} dataset.task_type regression model.loss_fun mse metric_best mae', 'cora')
    assert all(map(math.isfinite, row.values()))


@pytest.mark.parametrize('graphs', [1, 2])
def test_validation_and_testing_of_the_same_graphs_take_one_pass(
    run: Callable[..., dict[str, float]], monkeypatch: pytest.MonkeyPatch, graphs: int
) -> None:
    third, seen = torch.arange(60) % 3, list[bool]()
    masks = {'train_mask': third == 0, 'val_mask': third == 1, 'test_mask': (third != 0) & (torch.arange(60) > 10)}  # overlap
    forward = module.RunModule.forward

    def counted(self: module.RunModule, batch: Data) -> object:
        seen.append(self.training)
        return forward(self, batch)

    def apart(self: module.RunModule, loaders: list[object]) -> list[object]:
        self._evaluated = [('val',), ('test',)]
        return loaders

    passes: list[int] = []
    monkeypatch.setattr(module.RunModule, 'forward', counted)
    tried = checks.outputs_of_splits
    monkeypatch.setattr(checks, 'outputs_of_splits', lambda *args: [passes.append(1), *tried(*args)][1:])
    dataset = Nodes(masks, torch.randint(3, (60,)), graphs)
    at_once = run(dataset, NODE_OPTIONS, 'cora')
    assert seen == [True, False, True, False, False]  # of two epochs, and of the best one
    assert len(passes) == (1 if graphs == 1 else 3)  # before training
    monkeypatch.setattr(module.RunModule, 'loaders_of_evaluation', apart)
    assert run(dataset, f'{NODE_OPTIONS} name_tag apart', 'cora') == at_once
    assert at_once['val_loss'] != at_once['test_loss']


def test_a_batch_of_one_node_under_batch_norm(run: Callable[..., dict[str, float]]) -> None:
    """PyG's issue 829, with torch 2.13: batch normalization of one row ends in a ValueError when that batch comes."""
    labels = torch.tensor([0, 1, 2, 0, 1, 2, 0, 1, 2, 0] * 2)
    message = r"^train.batch_size: got 3 for 10 training graphs of data set 'mine', of which graph \d+ with 1 node"
    with pytest.raises(ArgumentError, match=message):
        run(Mine(labels, nodes=1), 'train.batch_size 3')
    run(Mine(labels, nodes=1), 'train.batch_size 3 gt.batch_norm False gt.layer_norm True name_tag layers')
    first, last = (int(np.random.default_rng([0, epoch]).permutation(10)[-1]) for epoch in (0, 1))
    run(Mine(labels, {last: 1}), 'train.batch_size 3 optim.max_epoch 1 name_tag one')  # another graph is alone
    assert first != last
    with pytest.raises(ArgumentError, match=rf'^train.batch_size: .* of which graph {last} with 1 node'):
        run(Mine(labels, {last: 1}), 'train.batch_size 3 name_tag two')
