r"""Datasets that need no download."""

from __future__ import annotations

from pyg_topomask.datasets.digits import DigitsGrid
from pyg_topomask.datasets.images import load_images
from pyg_topomask.datasets.induced_cycles import InducedCycles
from pyg_topomask.datasets.motifs import MotifGraphs
from pyg_topomask.datasets.moving_digits import moving_digits
from pyg_topomask.datasets.particles import ClothRollouts

__all__ = ['DATASETS', 'ClothRollouts', 'DigitsGrid', 'InducedCycles', 'MotifGraphs', 'load_images', 'moving_digits']

#: Datasets by the name that :obj:`dataset.name` uses with :obj:`dataset.format: topomask`.
DATASETS: dict[str, type[DigitsGrid]] = {'digits': DigitsGrid}
