r"""Runs the plans, task by task, and writes their tables: :obj:`python -m benchmarks accuracy --full`."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from benchmarks.accuracy.networks import Setting
from benchmarks.accuracy.plans import DEPTHS, KINDS, PLANS, VARIATIONS, WALKS, Plan
from benchmarks.accuracy.store import Job, read_runs, run_missing
from benchmarks.accuracy.tables import splits_of, write_depths, write_families, write_task
from benchmarks.accuracy.tasks import TASKS

__all__ = ['run', 'write_tables']

RUNS = 'accuracy_runs.csv'
#: The task whose models take longer in a smoke run than those of all others together.
LARGE = 'all_peptides'
#: How many splits the comparisons of layers and of depths have.
FEW_SPLITS = 5


def run(quick: bool, folder: Path) -> None:
    jobs = [*_jobs({name: tuple(plan.settings()) for name, plan in _plans(quick).items()}, quick)]
    if not quick:
        jobs += [job for family in (VARIATIONS, WALKS, KINDS, DEPTHS) for job in _jobs(family, quick, FEW_SPLITS)]
    run_missing(jobs, folder / RUNS)
    write_tables(folder, quick)


def _jobs(settings: Mapping[str, Sequence[Setting]], quick: bool, most: int = 10) -> Iterator[Job]:
    # Split by split: what is interrupted has compared all models on fewer splits.
    for name, of_task in settings.items():
        missing = [extra for library, extra in TASKS[name].needs if importlib.util.find_spec(library) is None]
        if missing:
            print(f'accuracy: {name} is left out; install pyg_topomask with its extra {missing}')
            continue
        for split in range(2 if quick else min(most, TASKS[name].splits)):
            yield from ((name, _shortened(setting, quick), split) for setting in of_task)


def _plans(quick: bool) -> Mapping[str, Plan]:
    r"""Returns the plan of each task. In a smoke run, each kind of model has one setting, and :obj:`LARGE` is left out."""
    if not quick:
        return PLANS
    plans = {name: plan for name, plan in PLANS.items() if name != LARGE}
    return {name: Plan({kind: settings[:1] for kind, settings in plan.groups.items()}) for name, plan in plans.items()}


def _shortened(setting: Setting, quick: bool) -> Setting:
    return setting._replace(epochs=1) if quick else setting


def write_tables(folder: Path, quick: bool = False) -> None:
    r"""Writes the tables of the runs that are finished. A task is left out if one of its settings has fewer than two splits.

    Args:
        folder (Path): Where the runs are, and the tables will be.
        quick (bool): Whether the runs are those of one epoch. (default: :obj:`False`)
    """
    runs = read_runs(folder / RUNS)
    for name, plan in _plans(quick).items():
        results = {setting: splits_of(runs, name, _shortened(setting, quick)) for setting in plan.settings()}
        if min(map(len, results.values())) > 1:
            write_task(name, TASKS[name], plan, results, folder)
    if not quick:
        write_families(runs, folder)
        write_depths(runs, folder)
