r"""The table of all runs: one row for each setting and split. Finished runs are never run again."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from pathlib import Path
from typing import Any, get_type_hints

from benchmarks.accuracy.networks import Setting
from benchmarks.accuracy.training import Run, train
from benchmarks.harness import in_parallel

__all__ = ['COLUMNS', 'Job', 'read_runs', 'run_missing']

#: The name of a task, a setting, and the number of a split.
Job = tuple[str, Setting, int]
COLUMNS = ('task', *Setting._fields, 'split', *Run._fields)
_TYPES = get_type_hints(Setting)


def read_runs(path: Path) -> dict[Job, Run]:
    r"""Returns the finished runs in a file, none if there is no file."""
    if not path.is_file():
        return {}
    with path.open(newline='') as file:
        return dict(map(_from_row, csv.DictReader(file)))


def _from_row(row: dict[str, str]) -> tuple[Job, Run]:
    values: dict[str, Any] = {name: convert(row[name]) for name, convert in _TYPES.items()}
    setting = Setting(**values)
    validation, test, epoch, seconds, parameters = (row[name] for name in Run._fields)
    run = Run(float(validation), float(test), int(epoch), float(seconds), int(parameters))
    return (row['task'], setting, int(row['split'])), run


def run_missing(jobs: Iterable[Job], path: Path) -> None:
    r"""Runs the jobs that a file has no row of, and appends a row as each one ends.

    Args:
        jobs (iterable): The jobs, in the order in which they begin.
        path (Path): The file, which may be interrupted at any time and continued later.
    """
    finished = read_runs(path)
    missing = [job for job in dict.fromkeys(jobs) if job not in finished]
    if not missing:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.is_file():
        path.write_text(','.join(COLUMNS) + '\n')
    for (task, setting, split), run in in_parallel(missing, _run, 'accuracy'):
        row = [task, *setting, split, f'{run.validation:.5f}', f'{run.test:.5f}', run.epoch, f'{run.seconds:.1f}']
        with path.open('a', newline='') as file:
            csv.writer(file, lineterminator='\n').writerow([*row, run.parameters])


def _run(job: Job) -> Run:
    return train(*job)
