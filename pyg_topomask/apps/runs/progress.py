r"""The progress bar of a run."""

from __future__ import annotations

from collections.abc import Mapping

from tqdm import tqdm


class EpochBar(tqdm):
    r"""One bar over all batches of all epochs, on stderr, so that stdout holds only results."""

    def __init__(
        self, label: str, num_epochs: int, num_batches: int, finished: int = 0, disable: bool = False, leave: bool = True
    ) -> None:
        self.num_epochs = num_epochs
        total, initial = num_epochs * num_batches, finished * num_batches
        looks = {'unit': 'batch', 'dynamic_ncols': True, 'disable': disable, 'leave': leave}
        super().__init__(desc=label, total=total, initial=initial, **looks)

    def show(self, row: Mapping[str, float], *columns: str) -> None:
        r"""Shows the number of an epoch and those of the given metrics that it has."""
        metrics = {key: f'{row[key]:.4f}' for key in columns if key in row}
        self.set_postfix({'epoch': f'{int(row["epoch"]) + 1}/{self.num_epochs}', **metrics})
