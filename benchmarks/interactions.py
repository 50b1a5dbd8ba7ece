r"""Reading interactions from text, and an epoch on as many as MovieLens 32M has: processor time and peak memory.

The files are made up, and deleted at the end. They take about 25 bytes for each interaction. Needs Polars; pandas is measured
where it is installed.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tqdm import tqdm

from benchmarks.harness import alone, status, write_table
from benchmarks.recommend_baselines import BASELINES, SETTINGS
from pyg_topomask.apps.recommend import load_interactions, read_interactions
from pyg_topomask.apps.recommend.options import default_config
from pyg_topomask.apps.recommend.runner import Training
from pyg_topomask.apps.runs.run import EpochBar

__all__ = ['epoch', 'run']

OURS, POLARS, PANDAS = 'read_interactions', 'polars.read_csv', 'pandas.read_csv'
#: The users and items of MovieLens 32M.
USERS, ITEMS = 200_948, 84_432
ROUNDS = 3
MADE_UP = 'A made-up .inter of RecBole with the numbers of users and items of MovieLens 32M, ratings and times.'


def run(quick: bool, folder: Path) -> None:
    size = 50_000 if quick else 20_000_000
    readers = [OURS, POLARS, *([PANDAS] if find_spec('pandas') else [])]
    measured: dict[str, list[tuple[float, int]]] = {reader: [] for reader in readers}
    with tempfile.TemporaryDirectory() as made:
        path = Path(made) / 'made.inter'
        _table(size).write_csv(path, separator='\t')
        for _ in tqdm(range(1 if quick else ROUNDS), desc='interactions'):
            for reader in readers:
                measured[reader].append(alone(_read, reader, path))
    seconds = {reader: statistics.median(time for time, _ in values) for reader, values in measured.items()}
    rows = [
        {
            'reader': reader,
            'interactions': size,
            'processor seconds': seconds[reader],
            'ours over this': seconds[OURS] / seconds[reader],
            'peak memory, GB': (peak := statistics.median(peak for _, peak in measured[reader])) / 1e9,
            'peak over arrays': peak / (16 * size),
        }
        for reader in readers
    ]
    note = (
        f'{MADE_UP} Of these, users, items and ratings are read. Reading ends with arrays: two of 64-bit ids for ours, and one '
        'for each column for the others, which drop no ratings of 0. Each turn is in a process of its own, and the figures are '
        f'medians of {len(measured[OURS])}. Memory is beyond that before reading. The arrays are users and items, 16 bytes for '
        'each interaction. A GB is 1e9 bytes.'
    )
    write_table('interactions', 'Reading interactions from text', note, rows, folder)


def epoch(quick: bool, folder: Path) -> None:
    size, batch = (50_000, 2**14) if quick else (32_000_000, 2**20)
    with tempfile.TemporaryDirectory() as made:
        path = Path(made) / 'made.inter'
        _table(size).write_csv(path, separator='\t')
        steps = alone(_epoch, path, batch, made)
    rows = [{'up to': what, 'processor seconds': spent, 'peak memory, GB': peak / 1e9} for what, spent, peak in steps]
    note = (
        f'{MADE_UP} From {size} lines of text to the end of an epoch of LightGCN ({SETTINGS["LightGCN"]["layers"]} layers, 64 '
        f'channels, batches of {batch}), without validation. Memory is all that the process had at its peak. A GB is 1e9 bytes.'
    )
    write_table('interactions_epoch', 'From text to an epoch', note, rows, folder)


def _table(size: int) -> Any:
    import polars

    rng = np.random.default_rng(0)
    return polars.DataFrame(
        {
            'user_id:token': np.sort(rng.integers(1, USERS + 1, size)),
            'item_id:token': (rng.pareto(1.1, size) * 300).astype(np.int64) % ITEMS + 1,
            'rating:float': rng.integers(1, 11, size) / 2,
            'timestamp:float': rng.integers(789_652_009, 1_697_164_147, size),
        }
    )


def _read(reader: str, path: Path) -> tuple[float, int]:
    r"""Returns the processor time and the peak memory beyond that before, in a process of its own."""
    read: dict[str, Callable[[], object]] = {OURS: lambda: read_interactions(path, 'table'), POLARS: lambda: _polars(path)}
    if reader == PANDAS:
        import pandas

        read[PANDAS] = lambda: pandas.read_csv(path, sep='\t', usecols=[0, 1, 2])
    import polars

    polars.DataFrame({'a': [1]})  # starts its threads
    before, start = status('VmHWM'), time.process_time()
    kept = read[reader]()
    spent = time.process_time() - start
    assert kept is not None
    return spent, status('VmHWM') - before


def _polars(path: Path) -> list[np.ndarray]:
    import polars

    return [column.to_numpy() for column in polars.read_csv(path, separator='\t', columns=[0, 1, 2])]


def _epoch(path: Path, batch: int, folder: str) -> list[tuple[str, float, int]]:
    r"""Returns processor time and peak memory up to the data set, to the model, and to the end of the epoch."""
    torch.manual_seed(0)
    start, rows = time.process_time(), []

    def note(what: str) -> None:
        rows.append((what, time.process_time() - start, status('VmHWM')))

    dataset = load_interactions(path, layout='table', val_ratio=0.0)
    note('the data set')
    config = default_config()
    config.recommend.update({'model': 'LightGCN', 'batch_size': batch, 'max_epoch': 1, 'progress': False, 'device': 'cpu'})
    config.recommend['LightGCN'] = type(config)(SETTINGS['LightGCN'])
    training = Training(config, dataset, Path(folder) / 'run', BASELINES['LightGCN'])
    note('the model')
    with EpochBar('LightGCN', 1, 1, 0, True) as bar:
        training._optimize(bar)
    note('the end of the epoch')
    return rows
