r"""What every benchmark needs: medians in one run, peak memory, a description of the machine, tables."""

from __future__ import annotations

import bisect
import csv
import ctypes
import hashlib
import inspect
import json
import multiprocessing
import os
import platform
import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from unittest import mock

import numpy
import scipy
import torch
import torch_geometric
from tqdm import tqdm

from pyg_topomask.apps.runs.compare import mean_error, verdict

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = [
    'KEEP_MEMORY',
    'Unavailable',
    'alone',
    'compare',
    'count_parameters',
    'data_folder',
    'describe_machine',
    'each',
    'in_parallel',
    'interleaved_medians',
    'keep_memory',
    'kept_runs',
    'nearest_width',
    'new_figure',
    'peak_memory',
    'read_runs',
    'run_all',
    'show',
    'status',
    'write_runs',
    'write_table',
]

# glibc returns blocks above 32 MiB to the system, which zeroes them at every allocation; this keeps them, as jemalloc does.
KEEP_MEMORY = 'glibc.malloc.mmap_threshold=17179869184:glibc.malloc.trim_threshold=17179869184'
Row = Mapping[str, object]
Job = TypeVar('Job', bound=tuple)
Result = TypeVar('Result')


class Unavailable(Exception):
    r"""A benchmark cannot run here, for a package, data or a checkout is missing."""


def data_folder(name: str) -> Path:
    r"""Returns where a data set lies that does not come with a package: a folder of :obj:`PYG_TOPOMASK_DATA`.

    Raises:
        Unavailable: If there is no such folder.
    """
    path = Path(os.environ.get('PYG_TOPOMASK_DATA', Path(__file__).parents[2] / 'shared' / 'data')) / name
    if not path.is_dir():
        raise Unavailable(f'no folder {path}: set PYG_TOPOMASK_DATA to a folder of data sets that has {name}')
    return path


def keep_memory() -> AbstractContextManager[object]:
    r"""A context in which processes start with :obj:`KEEP_MEMORY`."""
    return mock.patch.dict(os.environ, {'GLIBC_TUNABLES': KEEP_MEMORY})


def interleaved_medians(
    functions: Mapping[str, Callable[[], object]], repeats: int, clock: Callable[[], float] = time.perf_counter
) -> dict[str, float]:
    r"""Returns the median seconds of each function, called in turn so that drifts of the machine's speed hit all alike.

    Args:
        functions (dict): What to measure.
        repeats (int): How often.
        clock (callable): The clock. That of the process does not count what other processes take.
            (default: :func:`time.perf_counter`)
    """
    for function in functions.values():
        function()
    seconds: dict[str, list[float]] = {name: [] for name in functions}
    for _ in range(repeats):
        for name, function in functions.items():
            start = clock()
            function()
            seconds[name].append(clock() - start)
    return {name: statistics.median(values) for name, values in seconds.items()}


def alone(function: Callable[..., Result], *arguments: object) -> Result:
    r"""Calls a function in a process of its own, which inherits the memory of no other. If the process is killed, as where
    memory ends, that is an error.
    """
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context('spawn')) as pool:
        return pool.submit(function, *arguments).result()


def peak_memory(function: Callable[[], object]) -> int:
    r"""Returns the bytes of resident memory that a call takes at its peak beyond those held before it (Linux)."""
    ctypes.CDLL(None).malloc_trim(0)  # the call would take freed memory that still counts as resident
    Path('/proc/self/clear_refs').write_text('5')
    before = status('VmRSS')
    function()
    return max(0, status('VmHWM') - before)


def status(key: str) -> int:
    r"""Returns a number of bytes that the system counts for this process, such as VmRSS (Linux)."""
    for line in Path('/proc/self/status').read_text().splitlines():
        if line.startswith(f'{key}:'):
            return int(line.split()[1]) * 1024
    raise RuntimeError(f'/proc/self/status has no {key}')


def count_parameters(model: torch.nn.Module) -> int:
    r"""Returns the number of parameters of a model."""
    return sum(parameter.numel() for parameter in model.parameters())


def nearest_width(make: Callable[[int], torch.nn.Module], target: int, widths: Sequence[int]) -> int:
    r"""Returns the width with which a model comes closest to a number of parameters, the smallest of several.

    Args:
        make (callable): Makes the model of a width. Wider models have more parameters.
        target (int): The number of parameters.
        widths (list of ints): The widths to choose from, in ascending order.
    """

    def size(width: int) -> int:
        return count_parameters(make(width))

    above = bisect.bisect_left(widths, target, key=size)
    return min(widths[max(0, above - 1) : above + 1], key=lambda width: abs(size(width) - target))


def describe_machine() -> str:
    r"""Returns processor, cores, memory and versions in one line."""
    model = next(
        (line.split(':')[1].strip() for line in Path('/proc/cpuinfo').read_text().splitlines() if 'model name' in line), '?'
    )
    memory = os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30
    return (
        f'{model}, {os.cpu_count()} cores, {memory:.0f} GiB; Python {platform.python_version()}, torch {torch.__version__} '
        f'(up to {torch.get_num_threads()} threads), torch-geometric {torch_geometric.__version__}, NumPy {numpy.__version__}, '
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


def run_all(
    jobs: Sequence[Job], run: Callable[[Job], Any], settings: object, path: Path, processes: int | None = None
) -> dict[Job, Any]:
    r"""Runs jobs in parallel, on one thread each. Finished ones are kept in a file, and are not run again under the same
    settings by the same module.

    Args:
        jobs (list of tuples): What to run.
        run (callable): Called with a job in another process; returns something that JSON can hold.
        settings (object): What results depend on besides the job, in a form that JSON can hold.
        path (Path): The file.
        processes (int, optional): How many run at a time. (default: :obj:`None`, as many as the machine has cores)
    """
    function = run.func if isinstance(run, partial) else run
    source = Path(inspect.getfile(function)).read_bytes()
    settings = {'settings': settings, 'module': hashlib.sha256(source).hexdigest()[:12]}
    finished = read_runs(settings, path)
    missing = [job for job in jobs if _key(job) not in finished]
    for job, result in in_parallel(missing, run, path.stem, processes):
        finished[_key(job)] = result
        write_runs(finished, settings, path)
    return {job: finished[_key(job)] for job in jobs}


def in_parallel(
    jobs: Sequence[Job], run: Callable[[Job], Result], title: str, processes: int | None = None
) -> Iterator[tuple[Job, Result]]:
    r"""Runs jobs in other processes, on one thread each, and yields each with its result as it ends.

    Args:
        jobs (list of tuples): What to run.
        run (callable): Called with a job in another process.
        title (str): The title of the progress bar.
        processes (int, optional): How many run at a time. (default: :obj:`None`, as many as the machine has cores)
    """
    if not jobs:
        return
    processes = min(processes or multiprocessing.cpu_count(), len(jobs))
    with ProcessPoolExecutor(processes, mp_context=multiprocessing.get_context('spawn')) as pool:
        running = {pool.submit(_on_one_thread, run, job): job for job in jobs}
        try:
            for future in tqdm(as_completed(running), total=len(jobs), desc=title):
                yield running[future], future.result()
        finally:  # after an error, jobs that wait would run for nothing
            pool.shutdown(cancel_futures=True)


def kept_runs(folder: Path, name: str, quick: bool, part: str = '') -> Path:
    r"""Returns the file that keeps the runs of a benchmark, or of a part of it. A smoke run has its own."""
    return folder / f'{"_".join(filter(None, [name, "runs", part, "quick" if quick else ""]))}.json'


def read_runs(settings: object, path: Path) -> dict[str, Any]:
    r"""Returns the results that a file keeps, or none if they are of other settings."""
    stored = json.loads(path.read_text()) if path.is_file() else {}
    runs: dict[str, Any] = stored['runs'] if stored.get('settings') == json.loads(json.dumps(settings)) else {}
    return runs


def write_runs(runs: Mapping[str, Any], settings: object, path: Path) -> None:
    r"""Keeps results in a file, which is whole at any moment."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_suffix('.partial')
    unfinished.write_text(json.dumps({'settings': settings, 'runs': runs}, indent=1, sort_keys=True) + '\n')
    unfinished.replace(path)


def _on_one_thread(run: Callable[[Job], Result], job: Job) -> Result:
    torch.set_num_threads(1)
    return run(job)


def _key(job: tuple) -> str:
    return ' / '.join(map(str, job))


def show(values: Sequence[float], digits: int = 3) -> str:
    r"""Returns mean and standard error as a text.

    >>> show([0.1, 0.2, 0.3])
    '0.200 ± 0.058'
    """
    return '{0:.{2}f} ± {1:.{2}f}'.format(*mean_error(values), digits)


def each(values: Iterable[float], digits: int = 3) -> str:
    r"""Returns the values one by one as a text, for the column :obj:`seeds`.

    >>> each([0.1, 0.25])
    '0.100 0.250'
    """
    return ' '.join(f'{value:.{digits}f}' for value in values)


def compare(
    values: Sequence[float], reference: Sequence[float], column: str, is_reference: bool, digits: int = 3
) -> dict[str, object]:
    r"""Returns the columns on the paired difference to a reference: mean and standard error, and the verdict.

    >>> compare([0.3, 0.5, 0.4], [0.1, 0.2, 0.2], 'minus GAT', is_reference=False)
    {'minus GAT': '+0.233 ± 0.033', 'verdict': 'better'}
    """
    gaps = [value - base for value, base in zip(values, reference, strict=True)]
    mean, error = mean_error(gaps)
    text = f'{mean:+.{digits}f} ± {error:.{digits}f}'
    return {column: text, 'verdict': 'reference' if is_reference else verdict(mean, error)}


def new_figure(width: float, height: float) -> Figure:
    r"""Makes a figure of some inches, which no window shows."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout='constrained')


def _format(value: object) -> str:
    return f'{value:.4g}' if isinstance(value, float) else str(value)
