r"""The Lightning module of a run: optimization, metrics and checkpoints."""

from __future__ import annotations

import math
import time
from pathlib import Path
from typing import Any

import torch
from torch.optim.lr_scheduler import ReduceLROnPlateau
from torch_geometric.data import Data
from torch_geometric.graphgym import register
from torch_geometric.graphgym.config import cfg
from torch_geometric.graphgym.model_builder import GraphGymModule
from torch_geometric.graphgym.utils.comp_budget import params_count

from pyg_topomask.graphgym.checkpoint import rng_state, save_checkpoint, set_rng_state
from pyg_topomask.graphgym.metrics import EpochMeter, Row, best_row, write_metrics
from pyg_topomask.graphgym.optim import create_optimizer, create_scheduler
from pyg_topomask.graphgym.registry import lookup

__all__ = ['RunModule']

SPLITS = ('train', 'val', 'test')


class RunModule(GraphGymModule):
    r"""A network of GraphGym that records its epochs, and writes :obj:`metrics.csv` and checkpoints at the end of each.

    Args:
        run_dir (Path): The folder to write to.
        config (str): The configuration of the run in YAML, to be kept in the checkpoints.
        checkpoint (dict, optional): The checkpoint to continue from. (default: :obj:`None`)
    """

    def __init__(self, run_dir: Path, config: str, checkpoint: dict[str, Any] | None = None) -> None:
        lookup('model.type', cfg.model.type, register.network_dict)
        # GraphGym predicts one score where there are two classes.
        binary = cfg.dataset.task_type == 'classification' and cfg.share.dim_out == 2
        super().__init__(cfg.share.dim_in, 1 if binary else cfg.share.dim_out, cfg)
        cfg.params = params_count(self.model)
        self.folder = run_dir / 'checkpoints'
        self.folder.mkdir(exist_ok=True)
        self.metrics_file = run_dir / 'metrics.csv'
        self.config = config
        self.meters = {split: EpochMeter(split) for split in SPLITS[: cfg.share.num_splits]}
        self.history: list[Row] = [] if checkpoint is None else checkpoint['history']
        self._checkpoint = checkpoint
        self._epoch_start = self._batch_start = time.perf_counter()
        if checkpoint is not None:
            self.model.load_state_dict(checkpoint['model'])

    def configure_optimizers(self) -> Any:
        # The schedule is kept from Lightning, which steps it at a moment that depends on its kind: some are stepped
        # before a checkpoint at the end of the epoch is written, some after.
        optimizer = create_optimizer(self.model.parameters())
        self.scheduler = create_scheduler(optimizer)
        return optimizer

    def on_train_start(self) -> None:
        if self._checkpoint is None:
            self.save()  # so that there is something to resume from during the first epoch as well
            return
        self.trainer.optimizers[0].load_state_dict(self._checkpoint['optimizer'])
        self.scheduler.load_state_dict(self._checkpoint['scheduler'])
        set_rng_state(self._checkpoint['rng'])
        self._checkpoint = None

    def on_train_epoch_start(self) -> None:
        self._epoch_start = self._batch_start = time.perf_counter()

    def _lr(self) -> float:
        return float(self.trainer.optimizers[0].param_groups[0]['lr']) if self.trainer.optimizers else 0.0

    def _step(self, batch: Data, split: str) -> torch.Tensor:
        outputs = self._shared_step(batch, split)
        loss: torch.Tensor = outputs['loss']
        value = loss.item()
        if split == 'train' and not math.isfinite(value):
            raise FloatingPointError(
                f'the training loss became {value} in epoch {self.current_epoch}: lower optim.base_lr, set '
                f'optim.clip_grad_norm: True, or look for NaN in the data'
            )
        seconds = time.perf_counter() - self._batch_start
        self.meters[split].update(outputs['true'], outputs['pred_score'], value, self._lr(), seconds)
        self._batch_start = time.perf_counter()
        return loss

    def training_step(self, batch: Data, *args: Any, **kwargs: Any) -> torch.Tensor:
        return self._step(batch, 'train')

    def validation_step(self, batch: Data, batch_idx: int, dataloader_idx: int = 0) -> None:
        self._step(batch, SPLITS[1 + dataloader_idx])

    def finish_meters(self, epoch: int | None = None) -> Row:
        r"""Returns the metrics of all splits since the last call.

        Args:
            epoch (int, optional): The epoch to log them under, if they are to be logged. (default: :obj:`None`)
        """
        return {key: value for meter in self.meters.values() for key, value in meter.finish(epoch).items()}

    def on_train_epoch_end(self) -> None:
        lr, seconds = self._lr(), time.perf_counter() - self._epoch_start
        metrics = self.finish_meters(self.current_epoch)
        self.history.append({'epoch': self.current_epoch, 'lr': lr, 'seconds': seconds, **metrics})
        if not isinstance(self.scheduler, ReduceLROnPlateau):
            self.scheduler.step()
        elif 'val_loss' in metrics:
            self.scheduler.step(metrics['val_loss'])
        write_metrics(self.metrics_file, self.history)
        self.save()

    def on_fit_end(self) -> None:
        for meter in self.meters.values():
            meter.close()

    def save(self) -> None:
        r"""Saves the checkpoint to resume from, and the best model if this epoch brought it."""
        best = best_row(self.history)
        state = {'model': self.model.state_dict(), 'config': self.config, 'epoch': len(self.history), 'best': best}
        if best is not None and best is self.history[-1]:
            save_checkpoint(self.folder / 'best.pt', state)
        save_checkpoint(
            self.folder / 'last.pt',
            {
                **state,
                'optimizer': self.trainer.optimizers[0].state_dict(),
                'scheduler': self.scheduler.state_dict(),
                'rng': rng_state(),
                # With the seed in the configuration this determines the order of the data.
                'sampler_epoch': len(self.history),
                'history': self.history,
            },
        )
