r"""Runs one benchmark in a process of its own, and keeps how long it took."""

from __future__ import annotations

import csv
import multiprocessing
import sys
import time
from pathlib import Path

from benchmarks.harness import Unavailable
from benchmarks.registry import BENCHMARKS

__all__ = ['UNAVAILABLE', 'read_durations', 'run', 'work']

DURATIONS = 'durations.csv'
#: The exit status of a benchmark that lacks a package or data, as in :manpage:`sysexits.h(3)`.
UNAVAILABLE = 69


def run(name: str, quick: bool, folder: Path) -> bool:
    r"""Runs a benchmark, and returns whether it has not failed; one that cannot run here says so, and has not.

    A process of its own keeps its crash, memory and threads from the others. The minutes of runs that did not go on with what
    others had begun are kept in :obj:`durations.csv`.
    """
    if quick:
        for path in folder.glob(f'{name}_runs*_quick.json'):
            path.unlink()  # a smoke run is to run
    resumed, start = any(folder.glob(f'{name}_runs*.json')), time.monotonic()
    process = multiprocessing.get_context('spawn').Process(target=work, args=(name, quick, folder))
    process.start()
    process.join()
    if process.exitcode == 0 and not resumed:
        _write_durations({**read_durations(folder), name: f'{(time.monotonic() - start) / 60:.1f}'}, folder)
    if process.exitcode not in (0, UNAVAILABLE):
        print(f'{name}: failed with exit status {process.exitcode}', file=sys.stderr)
    return process.exitcode in (0, UNAVAILABLE)


def work(name: str, quick: bool, folder: Path) -> None:
    r"""Runs a benchmark in this process, and ends the process with :obj:`UNAVAILABLE` where something is missing."""
    try:
        BENCHMARKS[name].load()(quick, folder)
    except (Unavailable, ModuleNotFoundError) as reason:
        if isinstance(reason, ModuleNotFoundError) and str(reason.name).startswith(('pyg_topomask', 'benchmarks')):
            raise
        print(f'{name}: cannot run here: {reason}', file=sys.stderr)
        sys.exit(UNAVAILABLE)


def read_durations(folder: Path) -> dict[str, str]:
    r"""Returns the minutes that each benchmark took in a folder of results."""
    path = folder / DURATIONS
    if not path.is_file():
        return {}
    with path.open(newline='') as file:
        return {row['benchmark']: row['minutes'] for row in csv.DictReader(file)}


def _write_durations(durations: dict[str, str], folder: Path) -> None:
    with (folder / DURATIONS).open('w', newline='') as file:
        writer = csv.writer(file)
        writer.writerow(['benchmark', 'minutes'])
        writer.writerows(sorted(durations.items()))
