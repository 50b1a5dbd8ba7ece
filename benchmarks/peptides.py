r"""A part of Peptides-func, as small as a CPU asks for."""

from __future__ import annotations

import csv
import gzip
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.harness import data_folder

__all__ = ['MOLECULES', 'write_dataset', 'write_sample']

#: The name of the file of molecules.
MOLECULES = 'peptide_multi_class_dataset.csv.gz'
#: The name of the file of the splits.
SPLITS = 'splits_random_stratified.npz'


def write_sample(folder: Path, sizes: Mapping[str, int]) -> dict[str, NDArray[np.int64]]:
    r"""Writes molecules of the official splits, drawn at random, to a file of the form of :obj:`MOLECULES`, and returns which
    of its rows are in which split.

    Args:
        folder (Path): Where to write.
        sizes (dict): How many molecules of :obj:`"train"`, :obj:`"val"` and :obj:`"test"`.
    """
    source, generator = data_folder('lrgb') / 'peptides_func', np.random.default_rng(0)
    with np.load(source / SPLITS) as splits:
        chosen = {split: generator.permutation(splits[split])[:size] for split, size in sizes.items()}
    with gzip.open(source / MOLECULES, 'rt', newline='') as file:
        header, *rows = csv.reader(file)
    with gzip.open(folder / MOLECULES, 'wt', newline='') as file:
        csv.writer(file).writerows([header, *(rows[index] for indices in chosen.values() for index in indices)])
    ends = np.cumsum([len(indices) for indices in chosen.values()])
    return dict(zip(chosen, np.split(np.arange(ends[-1]), ends[:-1]), strict=True))


def write_dataset(folder: Path, sizes: Mapping[str, int]) -> None:
    r"""Writes what :class:`~pyg_topomask.apps.datasets.PeptidesFunctional` reads, see :func:`write_sample`."""
    np.savez(folder / SPLITS, **write_sample(folder, sizes))  # type: ignore[arg-type]
