r"""Runs the plans, task by task, and writes their tables: :obj:`python -m benchmarks accuracy --full`."""

from __future__ import annotations

from pathlib import Path

from benchmarks.accuracy.plans import PLANS
from benchmarks.accuracy.store import read_runs, run_missing
from benchmarks.accuracy.tables import write_task
from benchmarks.accuracy.tasks import TASKS

__all__ = ['run']

RUNS = 'accuracy_runs.csv'


def run(quick: bool, folder: Path) -> None:
    for name, plan in PLANS.items():
        path, task = folder / RUNS, TASKS[name]
        splits = 2 if quick else task.splits
        shortened = {setting: setting._replace(epochs=1) if quick else setting for setting in plan.settings()}
        # Split by split: what is interrupted has compared all models on fewer splits.
        run_missing(((name, setting, split) for split in range(splits) for setting in shortened.values()), path)
        runs = read_runs(path)
        results = {setting: [runs[name, short, split] for split in range(splits)] for setting, short in shortened.items()}
        write_task(name, task, plan, results, folder)
