r"""The progress bar of a run."""

from __future__ import annotations

from collections.abc import Mapping

from tqdm import tqdm


class EpochBar(tqdm):
    r"""One bar over all batches of all epochs, on stderr, so that stdout holds only results.

    Args:
        label (str): What is trained.
        num_epochs (int): The number of epochs.
        num_batches (int): The number of batches in an epoch.
        finished (int, optional): The number of epochs that are finished. (default: :obj:`0`)
        disable (bool, optional): Show nothing. (default: :obj:`False`)
    """

    def __init__(self, label: str, num_epochs: int, num_batches: int, finished: int = 0, disable: bool = False) -> None:
        self.num_epochs = num_epochs
        super().__init__(
            total=num_epochs * num_batches,
            initial=finished * num_batches,
            desc=label,
            unit='batch',
            dynamic_ncols=True,
            disable=disable,
        )

    def show(self, row: Mapping[str, float], *columns: str) -> None:
        r"""Shows the number of an epoch and some of its metrics.

        Args:
            row (dict): The epoch.
            *columns (str): The metrics, which the row may lack.
        """
        metrics = {key: f'{row[key]:.4f}' for key in columns if key in row}
        self.set_postfix({'epoch': f'{int(row["epoch"]) + 1}/{self.num_epochs}', **metrics})
