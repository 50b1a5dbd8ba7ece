r"""Peptides-func: which of ten functions does a peptide have?"""

from __future__ import annotations

import tempfile
from functools import lru_cache
from pathlib import Path

import torch
from torch import Tensor
from torch_geometric.data import Data

from benchmarks.graphs import Splits, in_batches
from benchmarks.peptides import write_dataset
from pyg_topomask.apps.datasets import PeptidesFunctional
from pyg_topomask.apps.datasets.bases import SPLITS

__all__ = ['functions_of_peptides']

BATCH = 128


@lru_cache(maxsize=1)
def functions_of_peptides(sizes: tuple[int, int, int]) -> Splits:
    r"""Returns molecules of the official splits of Peptides-func in batches of 128. The features of an atom are its categories
    as zeros and ones. Bonds have no features.

    Args:
        sizes (tuple): How many molecules of training, validation and test.
    """
    with tempfile.TemporaryDirectory() as root:
        write_dataset(Path(root), dict(zip(SPLITS, sizes, strict=True)))
        parts = [list(PeptidesFunctional(root, split)) for split in SPLITS]
    categories = [column.unique() for column in torch.cat([data.x for part in parts for data in part]).t()]
    first, second, third = (_batches(part, categories) for part in parts)
    return first, second, third


def _batches(molecules: list[Data], categories: list[Tensor]) -> list[Data]:
    batches = in_batches([Data(_one_hot(data.x, categories), data.edge_index, y=data.y) for data in molecules], BATCH)
    for batch in batches:
        batch.mask = torch.ones(batch.num_graphs, dtype=torch.bool)
    return batches


def _one_hot(x: Tensor, categories: list[Tensor]) -> Tensor:
    columns = zip(x.t(), categories, strict=True)
    return torch.cat([(column.unsqueeze(1) == kinds).float() for column, kinds in columns], 1)
