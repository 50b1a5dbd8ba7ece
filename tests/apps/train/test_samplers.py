"""Training on subgraphs of a single graph."""

from __future__ import annotations

import copy
import math
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch_geometric.data import Data, InMemoryDataset
from torch_geometric.graphgym import register
from torch_geometric.graphgym.config import cfg
from torch_geometric.loader import graph_saint

from pyg_topomask.apps.advise.advise import _graphs
from pyg_topomask.apps.train import module, train
from pyg_topomask.apps.train.checks import try_first_step
from pyg_topomask.errors import ArgumentError
from pyg_topomask.graphgym.data.loaders import SAMPLERS, create_loaders

pytestmark = pytest.mark.filterwarnings("ignore:'pin_memory' argument is set as true but no accelerator")

CORA = Path(__file__).parents[3] / 'graphgps_configs' / 'cora.yaml'
OPTIONS = """
dataset.format ring gt.layer_type GCN+GRF topomask.transforms [] gt.layers 1 gt.n_heads 2 gt.dim_hidden 8 gnn.dim_inner 8
train.batch_size 3 optim.max_epoch 2 optim.num_warmup_epochs 0 topomask.progress False
"""


class Adjacency:
    """What the samplers ask of torch_sparse.SparseTensor, which has to be compiled."""

    def __init__(self, row: Tensor, col: Tensor, value: Tensor, sparse_sizes: tuple[int, int]) -> None:
        self.entries, self.sizes, self.storage = (row, col, value), sparse_sizes, self

    def coo(self) -> tuple[Tensor, ...]:
        return self.entries

    def row(self) -> Tensor:
        return self.entries[0]

    def rowcount(self) -> Tensor:
        return torch.bincount(self.entries[0], minlength=self.sizes[0])

    def colcount(self) -> Tensor:
        return torch.bincount(self.entries[1], minlength=self.sizes[1])

    def random_walk(self, start: Tensor, length: int) -> Tensor:
        return (start[:, None] + torch.arange(length + 1)) % self.sizes[0]

    def saint_subgraph(self, nodes: Tensor) -> tuple[Adjacency, Tensor]:
        row, col, value = self.entries
        kept = torch.isin(row, nodes) & torch.isin(col, nodes)
        entries = (torch.searchsorted(nodes, row[kept]), torch.searchsorted(nodes, col[kept]), value[kept])
        return Adjacency(*entries, (nodes.numel(), nodes.numel())), value[kept]


class Ring(InMemoryDataset):
    """A ring of 60 nodes, of which 2 train."""

    def __init__(self) -> None:
        super().__init__(None)
        nodes = torch.arange(60)
        edge_index = torch.stack([torch.cat([nodes, nodes]), torch.cat([nodes.roll(1), nodes.roll(-1)])])
        masks = {'train_mask': nodes < 2, 'val_mask': nodes % 3 == 1, 'test_mask': nodes % 3 == 2}
        self.data, self.slices = self.collate([Data(x=torch.randn(60, 5), edge_index=edge_index, y=nodes % 3, **masks)])


@pytest.fixture(autouse=True)
def _ring(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graph_saint, 'SparseTensor', Adjacency)
    monkeypatch.setitem(register.loader_dict, 'ring', lambda format, *args: Ring() if format == 'ring' else None)


@pytest.mark.parametrize('sampler', SAMPLERS)
def test_advice_is_on_the_whole_graph(configure: Callable[..., None], sampler: str) -> None:
    configure(f'{OPTIONS} train.sampler {sampler}', CORA)
    graphs, chance = _graphs()
    assert [graph.num_nodes for graph in graphs] == [60]
    assert chance.labels == [20]  # the nodes of the test split have one label


@pytest.mark.filterwarnings('ignore:train_mask. no batch of an epoch')
@pytest.mark.parametrize('sampler', SAMPLERS)
def test_subgraphs_without_labels_count_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sampler: str) -> None:
    losses: list[tuple[int, float, float]] = []
    step = module.RunModule.training_step

    def recording(self: module.RunModule, batch: Data, *args: Any) -> Tensor:
        labels = int(batch.train_mask.sum())
        loss = step(self, batch, *args)
        gradient = torch.autograd.grad(loss, list(self.model.parameters()), retain_graph=True, allow_unused=True)
        losses.append((labels, loss.item(), sum(float(grad.abs().sum()) for grad in gradient if grad is not None)))
        return loss

    monkeypatch.setattr(module.RunModule, 'training_step', recording)
    options = [] if sampler == 'full_batch' else ['train.sampler', sampler, 'train.iter_per_epoch', '6']
    (row,) = train(CORA, [*OPTIONS.split(), *options], out=tmp_path)
    assert len(losses) == (2 if sampler == 'full_batch' else 12)
    assert all(math.isfinite(loss) and math.isfinite(gradient) for _, loss, gradient in losses)
    assert all((loss > 0) == (gradient > 0) == (labels > 0) for labels, loss, gradient in losses)
    assert any(labels == 0 for labels, *_ in losses) == (sampler != 'full_batch')
    assert math.isfinite(row['val_loss'])


def test_an_epoch_without_labels_warns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    unlabeled = Ring()
    unlabeled._data.train_mask = torch.zeros(60, dtype=torch.bool)
    monkeypatch.setitem(register.loader_dict, 'ring', lambda format, *args: unlabeled if format == 'ring' else None)
    options = [*OPTIONS.split(), 'train.sampler', 'saint_node', 'optim.max_epoch', '1']
    with pytest.warns(UserWarning, match='^train_mask: no batch of an epoch has a training label'):
        train(CORA, options, out=tmp_path)


def test_a_step_in_which_no_process_has_labels(configure: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> None:
    configure(OPTIONS, CORA)
    create_loaders()
    runner = module.RunModule()
    monkeypatch.setattr(runner, '_step', lambda batch, split: (torch.zeros(()), torch.tensor(0)))
    monkeypatch.setattr(module, 'num_processes', lambda: 2)
    monkeypatch.setattr(module, 'total', lambda value: 2 * value)
    assert runner.training_step(Data()) == 0


@pytest.mark.parametrize('options', ['', 'train.sampler saint_node', 'train.sampler saint_rw num_workers 1'])
def test_a_tried_step_changes_nothing(configure: Callable[..., None], options: str) -> None:
    configure(f'{OPTIONS} topomask.GRF.resample forward gt.attn_dropout 0.5 {options}', CORA)
    loader = create_loaders()[0]
    generator = None if loader.generator is None else loader.generator.get_state()
    network = module.RunModule().model
    before = copy.deepcopy(network.state_dict())

    def draw() -> list[float]:
        return [random.random(), np.random.rand(), float(torch.rand(()))]  # noqa: NPY002

    seeds = [random.getstate(), np.random.get_state(), torch.get_rng_state()]  # noqa: NPY002
    expected = draw()
    random.setstate(seeds[0])
    np.random.set_state(seeds[1])  # noqa: NPY002
    torch.set_rng_state(seeds[2])
    try_first_step(network, [loader], torch.device('cpu'))
    assert draw() == expected
    assert generator is None or torch.equal(generator, loader.generator.get_state())
    assert loader._iterator is None
    assert all(submodule.training for submodule in network.modules())
    torch.testing.assert_close(network.state_dict(), before, rtol=0, atol=0)


#: The place of an error outside of installed packages.
HERE = r'\(.*test_samplers\.py, line \d+, in \w+\)'


@pytest.mark.parametrize(
    'error', [KeyError('x'), IndexError('x'), TypeError('x'), RuntimeError('x\ny'), AttributeError('x'), ValueError('x')]
)
def test_what_fails_is_said_in_one_line(
    configure: Callable[..., None], monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    configure(OPTIONS, CORA)
    loader = create_loaders()[0]
    _fail_with(monkeypatch, error)
    message = rf"^dataset.task, gnn.head, .*: got 'node', 'node', .* ends in {type(error).__name__}: '?x'? {HERE}; accepted:"
    with pytest.raises(ValueError, match=message):
        try_first_step(module.RunModule().model, [loader], torch.device('cpu'))


def test_encoders_that_are_off_are_not_blamed(configure: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> None:
    configure(f'{OPTIONS} dataset.edge_encoder False', CORA)
    loader = create_loaders()[0]
    _fail_with(monkeypatch, AssertionError('x'))
    names = 'dataset.task, gnn.head, model.loss_fun' + ', dataset.node_encoder_name' * cfg.dataset.node_encoder
    with pytest.raises(ValueError, match=f'^{names}: got'):
        try_first_step(module.RunModule().model, [loader], torch.device('cpu'))


@pytest.mark.parametrize('task', ['classification_multi', 'classification_binary'])
def test_several_labels_of_a_sample_are_refused(
    configure: Callable[..., None], monkeypatch: pytest.MonkeyPatch, task: str
) -> None:
    configure(f'{OPTIONS} dataset.task_type {task}', CORA)
    loader = create_loaders()[0]
    monkeypatch.setattr('pyg_topomask.apps.train.checks.labelled_loss', lambda pred, true: None)
    network = module.RunModule().model.train()
    monkeypatch.setattr(network, 'forward', lambda batch: (torch.zeros(4, 3), torch.ones(4, 3)))
    with pytest.raises(ValueError, match=rf"^dataset.task_type: got '{task}', of one label .* shape \[4, 3\]"):
        try_first_step(network, [loader], torch.device('cpu'))


@pytest.mark.parametrize('split', ['train', 'val', 'test'])
def test_a_split_without_nodes_is_refused(configure: Callable[..., None], split: str) -> None:
    configure(OPTIONS, CORA)
    loaders = create_loaders()
    loaders[0].dataset[0][f'{split}_mask'].fill_(False)
    with pytest.raises(ValueError, match=f'^{split}_mask: got no node; accepted: masks that'):
        try_first_step(module.RunModule().model, loaders, torch.device('cpu'))


@pytest.mark.parametrize('seed', range(3))
@pytest.mark.parametrize('sampler', [name for name in SAMPLERS if name.startswith('saint')])
def test_a_sampled_part_without_labels_is_tried(configure: Callable[..., None], sampler: str, seed: int) -> None:
    configure(f'{OPTIONS} train.sampler {sampler} train.iter_per_epoch 1', CORA)
    torch.manual_seed(seed)
    loaders = create_loaders()
    try_first_step(module.RunModule().model, loaders[:1], torch.device('cpu'))


def test_labels_of_all_splits_are_tried(configure: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> None:
    configure(f'{OPTIONS} dataset.task_type regression', CORA)
    loader = create_loaders()[0]
    monkeypatch.setattr('pyg_topomask.apps.train.checks.labelled_loss', lambda pred, true: None)
    network = module.RunModule().model
    data = loader.dataset[0]
    labels = torch.zeros(data.num_nodes).masked_fill(data.val_mask & ~data.train_mask, torch.inf)
    monkeypatch.setattr(network, 'forward', lambda batch: (labels[batch[f'{batch.split}_mask']],) * 2)
    try_first_step(network, [loader], torch.device('cpu'))
    with pytest.raises(
        ValueError, match=r"^y: got infinite numbers in the val split of data set 'Cora'; accepted: finite numbers"
    ):
        try_first_step(network, [loader, loader], torch.device('cpu'))
    cfg.custom_metrics = ['mae']  # may leave out labels
    try_first_step(network, [loader, loader], torch.device('cpu'))


def test_one_split_for_each_graph_with_masks_is_refused(configure: Callable[..., None]) -> None:
    configure(f'{OPTIONS} gnn.head inductive_node', CORA)
    loaders = create_loaders()
    with pytest.raises(ValueError, match=r"^gnn.head: got 'inductive_node' for one graph with train_mask; accepted: node"):
        try_first_step(module.RunModule().model, loaders, torch.device('cpu'))


def test_masks_of_several_graphs_that_are_not_read_are_warned_of(
    configure: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    two = Ring()
    two.data, two.slices = two.collate([two[0], two[0]])
    two._data_list = None
    monkeypatch.setitem(register.loader_dict, 'ring', lambda format, *args: two if format == 'ring' else None)
    configure(f'{OPTIONS} gnn.head inductive_node', CORA)
    loaders = create_loaders()
    with pytest.warns(UserWarning, match=r"^gnn.head: got 'inductive_node' for graphs with train_mask, which") as seen:
        try_first_step(module.RunModule().model, loaders, torch.device('cpu'))
    assert len(seen) == 1


@pytest.mark.parametrize('error', [torch.OutOfMemoryError('x'), ArgumentError('x', 1, '2'), ImportError('x')])
def test_other_errors_pass_as_they_are(
    configure: Callable[..., None], monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    configure(OPTIONS, CORA)
    loader = create_loaders()[0]
    _fail_with(monkeypatch, error)
    with pytest.raises(type(error), match=r'^x(: got 1; accepted: 2)?$'):
        try_first_step(module.RunModule().model, [loader], torch.device('cpu'))


def _fail_with(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    def loss(pred: Tensor, true: Tensor) -> None:
        raise error

    monkeypatch.setitem(register.loss_dict, 'failing', loss)
