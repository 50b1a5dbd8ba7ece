r"""Runs the plans, task by task, and writes their tables: :obj:`python -m benchmarks accuracy --full`."""

from __future__ import annotations

from itertools import count, takewhile
from pathlib import Path

from benchmarks.accuracy.plans import PLANS
from benchmarks.accuracy.store import read_runs, run_missing
from benchmarks.accuracy.tables import write_task
from benchmarks.accuracy.tasks import TASKS

__all__ = ['run', 'write_tables']

RUNS = 'accuracy_runs.csv'


def run(quick: bool, folder: Path) -> None:
    for name, plan in PLANS.items():
        splits = 2 if quick else TASKS[name].splits
        settings = [setting._replace(epochs=1) if quick else setting for setting in plan.settings()]
        # Split by split: what is interrupted has compared all models on fewer splits.
        run_missing(((name, setting, split) for split in range(splits) for setting in settings), folder / RUNS)
    write_tables(folder, quick)


def write_tables(folder: Path, quick: bool = False) -> None:
    r"""Writes the tables of the runs that are finished. A task of which a setting has fewer than two splits is left out.

    Args:
        folder (Path): Where the runs are, and the tables will be.
        quick (bool): Whether the runs are those of one epoch. (default: :obj:`False`)
    """
    runs = read_runs(folder / RUNS)
    for name, plan in PLANS.items():
        results = {}
        for setting in plan.settings():
            shortened = setting._replace(epochs=1) if quick else setting
            jobs = ((name, shortened, split) for split in count())
            results[setting] = [runs[job] for job in takewhile(runs.__contains__, jobs)]
        if min(map(len, results.values())) > 1:
            write_task(name, TASKS[name], plan, results, folder)
