r"""The progress bar of a run."""

from __future__ import annotations

from typing import Any

from torch_geometric.graphgym.imports import pl
from tqdm import tqdm

from pyg_topomask.graphgym.metrics import metric_best

__all__ = ['Progress']


class Progress(pl.Callback):  # type: ignore[misc]
    r"""One bar over all batches of all epochs, on stderr, so that stdout holds results alone."""

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        batches = trainer.num_training_batches
        self.bar = tqdm(
            total=trainer.max_epochs * batches,
            initial=trainer.current_epoch * batches,
            desc='train',
            unit='batch',
            dynamic_ncols=True,
        )

    def on_train_batch_end(self, *args: Any, **kwargs: Any) -> None:
        self.bar.update()

    def on_train_epoch_start(self, trainer: Any, pl_module: Any) -> None:
        # Lightning asks callbacks before the module at the end of an epoch: its metrics are known at the next start.
        self._show(trainer, pl_module)

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        self._show(trainer, pl_module)

    def _show(self, trainer: Any, pl_module: Any) -> None:
        if pl_module.history:
            row = pl_module.history[-1]
            metrics = {key: row[key] for key in ('train_loss', f'val_{metric_best()}') if key in row}
            epoch = f'{len(pl_module.history)}/{trainer.max_epochs}'
            self.bar.set_postfix({'epoch': epoch, **{key: f'{value:.4f}' for key, value in metrics.items()}})

    def teardown(self, trainer: Any, pl_module: Any, stage: str) -> None:
        if stage == 'fit' and hasattr(self, 'bar'):
            self.bar.close()
