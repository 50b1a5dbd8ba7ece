r"""Datasets that need no download."""

from __future__ import annotations

from pyg_topomask.datasets.digits import DigitsGrid

__all__ = ['DATASETS', 'DigitsGrid']

#: Datasets by the name that :obj:`dataset.name` uses with :obj:`dataset.format: topomask`.
DATASETS: dict[str, type[DigitsGrid]] = {'digits': DigitsGrid}
