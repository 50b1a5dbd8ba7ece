"""The Lightning module around any network."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import pytorch_lightning as pl
import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader
from torch_geometric.nn import global_add_pool

from pyg_topomask.apps.train import LightningModel
from pyg_topomask.errors import ArgumentError

pytestmark = pytest.mark.filterwarnings('ignore:.*num_workers', "ignore:'pin_memory' argument is set as true")


class Network(torch.nn.Module):
    """Linear, of nodes or of sums of nodes."""

    def __init__(self, out: int, pool: bool = False) -> None:
        super().__init__()
        self.linear, self.pool = torch.nn.Linear(3, out).double(), pool

    def forward(self, batch: Data) -> Tensor:
        x = self.linear(batch.x)
        return global_add_pool(x, batch.batch) if self.pool else x


def graph(n: int, y: Tensor, **given: Any) -> Data:
    x = torch.randn(n, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(n))
    return Data(x=x, edge_index=torch.zeros(2, 0, dtype=torch.long), y=y, **given)


def trainer(**given: Any) -> pl.Trainer:
    quiet = dict.fromkeys(('logger', 'enable_checkpointing', 'enable_progress_bar', 'enable_model_summary'), False)
    return pl.Trainer(accelerator='cpu', **quiet, **given)


def cross_entropies(scores: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.log(np.exp(scores).sum(1)) - scores[np.arange(len(y)), y]


def test_losses_and_accuracies_are_means_over_the_labels_of_all_batches() -> None:
    graphs = [graph(n, torch.tensor([n % 2])) for n in range(2, 9)]
    network = Network(2, pool=True)
    (found,) = trainer().validate(LightningModel(network), DataLoader(graphs, batch_size=3), verbose=False)
    weight, bias = (p.detach().numpy() for p in network.linear.parameters())
    scores = np.stack([(g.x.numpy() @ weight.T + bias).sum(0) for g in graphs])
    y = np.array([n % 2 for n in range(2, 9)])
    assert found['val_loss'] == pytest.approx(cross_entropies(scores, y).mean(), rel=1e-6)
    assert found['val_accuracy'] == pytest.approx((scores.argmax(1) == y).mean(), rel=1e-6)


@pytest.mark.parametrize('kind', ['masks', 'sampled'])
def test_only_nodes_of_the_split_or_the_sampled_ones_count(kind: str) -> None:
    y, mask = torch.arange(6) % 2, torch.tensor([1, 1, 0, 0, 1, 0]).bool()
    # As NeighborLoader, whose first nodes are those it was asked for.
    given = {'val_mask': mask, 'train_mask': ~mask} if kind == 'masks' else {'input_id': torch.arange(2), 'batch_size': 2}
    data, network = graph(6, y, **given), Network(2)
    batches = torch.utils.data.DataLoader([data], collate_fn=lambda samples: samples[0])
    model = LightningModel(network)
    (found,) = trainer().validate(model, batches, verbose=False)
    rows = np.flatnonzero(mask.numpy()) if kind == 'masks' else np.arange(2)
    scores = network(data).detach().numpy()
    assert found['val_loss'] == pytest.approx(cross_entropies(scores[rows], y.numpy()[rows]).mean(), rel=1e-6)
    assert len(trainer().predict(model, batches)[0]) == (6 if kind == 'masks' else 2)


def test_labels_that_are_nan_do_not_count_and_a_batch_without_labels_trains_nothing() -> None:
    y = torch.tensor([[1.0, np.nan], [np.nan, 2.0], [0.5, 0.25]])
    data, network = graph(3, y), Network(2)
    (found,) = trainer().validate(LightningModel(network), DataLoader([data]), verbose=False)
    errors = (network(data).detach().numpy() - y.numpy()) ** 2
    assert found == {'val_loss': pytest.approx(np.nanmean(errors), rel=1e-6)}
    before = network.linear.weight.detach().clone()
    batches = DataLoader([graph(3, torch.full((3, 2), torch.nan))])
    trainer(max_epochs=1).fit(LightningModel(network), batches, batches)
    assert torch.equal(network.linear.weight, before)


def test_it_trains_with_ones_own_loss_and_a_checkpoint_restores_it(tmp_path: Path) -> None:
    graphs = [graph(n, torch.tensor([[float(n % 2)]])) for n in range(2, 9)]

    def loss(pred: Tensor, y: Tensor) -> Tensor:
        return (pred - y).abs().mean()

    model = LightningModel(Network(1, pool=True), loss, lr=0.05, weight_decay=1e-4)
    (before,) = trainer().test(model, DataLoader(graphs), verbose=False)
    run = trainer(max_epochs=20)
    run.fit(model, DataLoader(graphs, batch_size=3), DataLoader(graphs))
    (after,) = trainer().test(model, DataLoader(graphs), verbose=False)
    assert after['test_loss'] < before['test_loss']
    (group,) = run.optimizers[0].param_groups
    assert (group['lr'], group['weight_decay']) == (0.05, 1e-4)
    run.save_checkpoint(tmp_path / 'epoch.ckpt')
    network = Network(1, pool=True)
    restored = LightningModel.load_from_checkpoint(tmp_path / 'epoch.ckpt', network=network)
    assert dict(restored.hparams) == {'lr': 0.05, 'weight_decay': 1e-4}
    assert torch.equal(restored.network.linear.weight, model.network.linear.weight)


def test_labels_of_another_number_and_rates_below_zero_are_errors() -> None:
    with pytest.raises(ArgumentError, match=r'batch\.y: got 4 labels for 3 predictions'):
        LightningModel(Network(2)).training_step(graph(3, torch.zeros(4, dtype=torch.long)), 0)
    with pytest.raises(ArgumentError, match='lr: got -1'):
        LightningModel(Network(2), lr=-1)
    with pytest.raises(ArgumentError, match='weight_decay: got -1'):
        LightningModel(Network(2), weight_decay=-1)
