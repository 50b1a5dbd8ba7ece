r"""A comparison of finished training runs over their seeds."""

from __future__ import annotations

import json
import math
import re
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pyg_topomask.apps.runs.run import RESULT
from pyg_topomask.apps.runs.tables import TableRow
from pyg_topomask.errors import ArgumentError
from pyg_topomask.utils.checks import check_choice

#: Result of one seed, by seed.
Results = dict[str, dict[str, Any]]

#: Columns of medians over the seeds.
MEDIANS = {'parameters': 'parameters', 'epochs': 'epochs', 's/epoch': 'seconds_per_epoch'}


def mean_error(values: Sequence[float]) -> tuple[float, float]:
    r"""Returns the mean of values and its standard error, which is NaN for a single value."""
    error = statistics.stdev(values) / math.sqrt(len(values)) if len(values) > 1 else math.nan
    return statistics.mean(values), error


def verdict(difference: float, error: float, words: tuple[str, str] = ('better', 'worse')) -> str:
    r"""Says what a mean paired difference and its standard error show: :obj:`"not distinguishable"` below two standard errors,
    and otherwise the word for a difference above or below 0.
    """
    # Differences of whole counts may be two errors exactly, which rounding puts on either side.
    if difference == 0 or not abs(difference) >= 2 * error * (1 - 1e-9):
        return 'not distinguishable'
    return words[difference < 0]


def compare(folders: Sequence[str | Path], metric: str | None = None) -> list[TableRow]:
    r"""Compares finished training runs over their seeds, one row for each.

    A row has the mean of a metric over the seeds with its standard error, and the differences to the first folder, paired by
    seed, with their :func:`verdict`. If the seeds of two runs differ, the number of common seeds is shown. The metrics are
    those of the best epoch by validation.

    A folder, such as :obj:`results/digits`, contains one folder for each seed. The metric is one of :obj:`result.json`, by
    default the test metric by whose validation the first run selected its best epoch. Raises a :class:`ValueError` if a folder
    has no finished run, a result is broken, or a run lacks the metric.
    """
    results = [_results(Path(folder)) for folder in folders]
    if metric is None:
        metric = next(iter(results[0].values()))['metric']
    values = [_values(folder, runs, metric) for folder, runs in zip(folders, results, strict=True)]
    rows: list[TableRow] = []
    for folder, runs, tested in zip(folders, results, values, strict=True):
        gaps = [tested[seed] - values[0][seed] for seed in tested if seed in values[0]]
        is_first = tested is values[0]
        common = f' ({len(gaps)} in common)' if len(gaps) < max(len(tested), len(values[0])) else ''
        paired = _show(gaps, '+.4f') + common if gaps else 'no seed in common'
        rows.append(
            {
                'run': str(folder),
                'seeds': ' '.join(runs),
                **{name: statistics.median_low([result[key] for result in runs.values()]) for name, key in MEDIANS.items()},
                metric: _show(list(tested.values()), '.4f'),
                'minus the first, paired': '' if is_first else paired,
                'verdict': '' if is_first or len(gaps) < 2 else verdict(*mean_error(gaps), ('higher', 'lower')),
            }
        )
    return rows


def _results(folder: Path) -> Results:
    r"""Returns the results in a folder of runs, in the order of their seeds."""
    paths = sorted(folder.glob(f'*/{RESULT}'), key=lambda path: [int(part) for part in re.findall(r'\d+', path.parent.name)])
    if not paths:
        raise ArgumentError('runs', str(folder), f'folders with finished runs, as <folder>/<seed>/{RESULT}')
    return {path.parent.name: _read(path) for path in paths}


def _read(path: Path) -> dict[str, Any]:
    try:
        result = json.loads(path.read_text())
    except ValueError:
        result = None
    if not isinstance(result, dict) or not {'metric', *MEDIANS.values()} <= result.keys():
        raise ArgumentError('runs', f'{path}, which is not the result of a run', f'{RESULT} as training writes it')
    return result


def _values(folder: str | Path, runs: Results, metric: str) -> dict[str, float]:
    for result in runs.values():
        known = [key for key, value in result.items() if key.startswith(('val_', 'test_')) and value is not None]
        check_choice(known, **{f'metric of {folder}': metric})
    return {seed: result[metric] for seed, result in runs.items()}


def _show(values: Sequence[float], form: str) -> str:
    mean, error = mean_error(values)
    return f'{mean:{form}}' if math.isnan(error) else f'{mean:{form}} ± {error:.4f}'
