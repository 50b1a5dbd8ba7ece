r"""A Lightning module around any network, for those who write their own training in Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, mse_loss
from torch_geometric.data import Data
from torch_geometric.graphgym.imports import pl

from pyg_topomask.errors import ArgumentError
from pyg_topomask.utils.checks import check_above_zero, check_not_negative


class LightningModel(pl.LightningModule):
    r"""A :class:`~pytorch_lightning.LightningModule` around any network that maps a batch of PyG to predictions.

    The labels are :obj:`batch.y`, :obj:`[n]` or :obj:`[n, T]`, one for each graph or node that the network predicts. Of the
    batches of :class:`~torch_geometric.loader.NeighborLoader`, only the sampled nodes count, and of other data with
    :obj:`train_mask`, :obj:`val_mask` and :obj:`test_mask` the nodes of the split. Labels that are NaN do not count. It logs
    :obj:`train_loss`, :obj:`val_loss` and :obj:`test_loss`, and for classes :obj:`val_accuracy` and :obj:`test_accuracy`.

    Args:
        network (torch.nn.Module): The network, called as :obj:`network(batch)`.
        loss (Callable, optional): The mean loss of predictions and labels. (default: :obj:`None`: the cross entropy if labels
            are whole numbers, and otherwise the mean squared error)
        lr (float, optional): The learning rate of Adam. (default: :obj:`0.001`)
        weight_decay (float, optional): Its weight decay. (default: :obj:`0.0`)

    Raises:
        ValueError: If the numbers of predictions and labels differ.

    .. code-block:: python

        model = LightningModel(network, lr=0.01)
        pl.Trainer(max_epochs=10).fit(model, DataLoader(graphs, batch_size=32))
        model = LightningModel.load_from_checkpoint('epoch.ckpt', network=network)
    """

    def __init__(
        self,
        network: torch.nn.Module,
        loss: Callable[[Tensor, Tensor], Tensor] | None = None,
        lr: float = 0.001,
        weight_decay: float = 0.0,
    ) -> None:
        super().__init__()
        check_above_zero(lr=lr)
        check_not_negative(weight_decay=weight_decay)
        self.save_hyperparameters(ignore=['network', 'loss'])
        self.network, self.loss = network, loss

    def forward(self, batch: Data) -> Tensor:
        out: Tensor = self.network(batch)
        return out

    def training_step(self, batch: Data, batch_idx: int) -> Tensor:
        return self._step(batch, 'train')

    def validation_step(self, batch: Data, batch_idx: int) -> None:
        self._step(batch, 'val')

    def test_step(self, batch: Data, batch_idx: int) -> None:
        self._step(batch, 'test')

    def predict_step(self, batch: Data, batch_idx: int) -> Tensor:
        return self(batch)[: batch.batch_size] if 'input_id' in batch else self(batch)

    def _step(self, batch: Data, split: str) -> Tensor:
        r"""Returns the mean loss over the labels of a split, which is 0 without labels."""
        pred, y = self(batch), batch.y
        if pred.size(0) != y.size(0):
            given = f'{y.size(0)} labels for {pred.size(0)} predictions'
            raise ArgumentError('batch.y', given, 'as many labels as predictions', 'pool nodes if labels are of graphs')
        if 'input_id' in batch:
            pred, y = pred[: batch.batch_size], y[: batch.batch_size]
        elif f'{split}_mask' in batch:
            pred, y = pred[batch[f'{split}_mask']], y[batch[f'{split}_mask']]
        classes = not y.is_floating_point()
        if not classes:
            pred, y = pred.view_as(y), y.to(pred.dtype)
            pred, y = pred[~y.isnan()], y[~y.isnan()]
        if y.numel() == 0:
            return pred.sum()
        loss = (self.loss or (cross_entropy if classes else mse_loss))(pred, y)
        self._log(f'{split}_loss', loss, y)
        if classes and pred.dim() == y.dim() + 1 and split != 'train':
            self._log(f'{split}_accuracy', (pred.argmax(1) == y).float().mean(), y)
        return loss

    def _log(self, name: str, value: Tensor, y: Tensor) -> None:
        # Weighted by the labels, so that the mean of an epoch is that of its labels.
        self.log(name, value, on_step=False, on_epoch=True, batch_size=y.size(0), sync_dist=True)

    def configure_optimizers(self) -> Any:
        return torch.optim.Adam(self.parameters(), lr=self.hparams['lr'], weight_decay=self.hparams['weight_decay'])
