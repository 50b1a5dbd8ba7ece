r"""What every benchmark needs: medians in one run, peak memory, a description of the machine, tables."""

from __future__ import annotations

import csv
import math
import os
import platform
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy
import scipy
import torch
import torch_geometric

__all__ = ['describe_machine', 'interleaved_medians', 'mean_error', 'peak_memory', 'verdict', 'write_table']

Row = Mapping[str, object]


def interleaved_medians(functions: Mapping[str, Callable[[], object]], repeats: int) -> dict[str, float]:
    r"""Returns the median seconds of each function, called in turn so that drifts of the machine's speed hit all alike."""
    for function in functions.values():
        function()
    seconds: dict[str, list[float]] = {name: [] for name in functions}
    for _ in range(repeats):
        for name, function in functions.items():
            start = time.perf_counter()
            function()
            seconds[name].append(time.perf_counter() - start)
    return {name: statistics.median(values) for name, values in seconds.items()}


def peak_memory(function: Callable[[], object]) -> int:
    r"""Returns the bytes of resident memory that a call takes at its peak beyond those held before it (Linux)."""
    Path('/proc/self/clear_refs').write_text('5')
    before = _status('VmRSS')
    function()
    return max(0, _status('VmHWM') - before)


def _status(key: str) -> int:
    for line in Path('/proc/self/status').read_text().splitlines():
        if line.startswith(f'{key}:'):
            return int(line.split()[1]) * 1024
    raise RuntimeError(f'/proc/self/status has no {key}')


def describe_machine() -> str:
    r"""Returns processor, cores, memory and versions in one line."""
    model = next(
        (line.split(':')[1].strip() for line in Path('/proc/cpuinfo').read_text().splitlines() if 'model name' in line), '?'
    )
    memory = os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30
    return (
        f'{model}, {os.cpu_count()} cores, {memory:.0f} GiB; Python {platform.python_version()}, torch {torch.__version__} '
        f'({torch.get_num_threads()} threads), torch-geometric {torch_geometric.__version__}, NumPy {numpy.__version__}, '
        f'SciPy {scipy.__version__}; {time.strftime("%Y-%m-%d")}'
    )


def write_table(name: str, title: str, note: str, rows: Sequence[Row], folder: Path) -> None:
    r"""Writes rows as :obj:`name.csv` and, with title, note and machine, as :obj:`name.md`."""
    folder.mkdir(parents=True, exist_ok=True)
    columns = list(rows[0])
    with (folder / f'{name}.csv').open('w', newline='') as file:
        writer = csv.DictWriter(file, columns)
        writer.writeheader()
        writer.writerows(rows)
    lines = [f'# {title}', '', note, '', f'Machine: {describe_machine()}.', '']
    lines += ['| ' + ' | '.join(columns) + ' |', '|' + ' --- |' * len(columns)]
    lines += ['| ' + ' | '.join(_format(row[column]) for column in columns) + ' |' for row in rows]
    (folder / f'{name}.md').write_text('\n'.join(lines) + '\n')


def mean_error(values: Sequence[float]) -> tuple[float, float]:
    r"""Returns mean and standard error."""
    return statistics.mean(values), statistics.stdev(values) / math.sqrt(len(values))


def verdict(difference: float, error: float) -> str:
    r"""Says in words what a paired difference and its standard error show."""
    if abs(difference) < 2 * error or difference == 0:
        return 'not distinguishable'
    return 'better' if difference > 0 else 'worse'


def _format(value: object) -> str:
    return f'{value:.4g}' if isinstance(value, float) else str(value)
