r"""Runs the models, and writes their tables: :obj:`python -m benchmarks graph_properties families spins --full`."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.harness import each, kept_runs, new_figure, run_all, show, write_table
from benchmarks.long_range.networks import MODELS
from benchmarks.long_range.tasks import PROPERTIES, TASKS
from benchmarks.long_range.training import PARAMETERS, Job, train
from pyg_topomask.apps.runs.compare import mean_error, verdict

__all__ = ['families', 'performer', 'run', 'spins']

#: The seeds and the learning rate of the papers on graph properties.
SEEDS, RATE = (41, 95, 12, 35), 3e-3
MASKS = ('Hop with sums, geometric, one layer', 'Hop with sums, geometric', 'Hop with sums', 'Hop', 'Toeplitz')
BEST, PERFORMERS = MASKS[0], ('GPS, Performer', 'GPS, narrow Performer')
#: The models that train for longer, with their epochs and numbers of seeds by property, and those of the picture.
LONG = {
    BEST: (100, (4, 2, 2)),
    'Hop with sums, geometric': (120, (2, 4, 4)),
    'softmax with distances, one layer': (60, (2, 2, 2)),
    'GPS, softmax': (40, (2, 2, 2)),
    'GIN': (60, (2, 2, 2)),
}
DRAWN = (*LONG, 'PNA')
#: The models of tables of their own.
APART = ('Toeplitz', *PERFORMERS)
#: The models of a smoke run.
FEW = (BEST, 'Hop', 'GIN')
Jobs = Sequence[Job]
Results = Mapping[Job, dict[str, Any]]

_NETWORK = (
    'All models have the same network around their layers (batch norm, residual connections, feed-forward blocks; GPS has its '
    f'own), as many parameters as the width allows to come near {PARAMETERS:,}, a one-cycle learning rate of at most {RATE}, '
    'Adam, and weight decay 1e-6. Nothing was tuned model by model. The results are those of the epoch with the best '
    'validation. Differences are paired by seed; one below two standard errors is "not distinguishable". Seconds are those of '
    'a processor in training, on one thread.'
)


def run(quick: bool, folder: Path) -> None:
    jobs = _jobs(PROPERTIES, [name for name in MODELS if name not in APART], 15, 2)
    for model, (epochs, seeds) in LONG.items():
        jobs += [job for task, number in zip(PROPERTIES, seeds, strict=True) for job in _jobs([task], [model], epochs, number)]
    jobs, results = _run('graph_properties', jobs, quick, folder)
    note = (
        'The graphs, the sizes and the loss are those of the A-DGN paper (ICLR 2023), from the generator of the PNA paper with '
        'a draw of our own: 5,120 graphs of 25 to 34 nodes for training, 640 for validation, 1,280 for test. Batches have 128 '
        'graphs. Numbers are log10 of the mean squared error, mean ± standard error over seeds: lower is better. All models '
        'train for the 15 epochs of the first rows. In the last rows, the best masks and others train for longer. '
        f'Short and long trainings are compared among themselves. {_NETWORK}'
    )
    write_table(
        'graph_properties', 'Distances, eccentricities and diameters of small graphs', note, _rows(results, jobs, _log), folder
    )
    _write_larger(results, jobs, folder)


def performer(quick: bool, folder: Path) -> None:
    jobs, results = _run('performer', _jobs(PROPERTIES, [BEST, 'GPS, softmax', *PERFORMERS], 15, 2), quick, folder)
    note = (
        'Graphs, protocol and measure are those of the first rows of the table graph_properties, with the attention of '
        "Performer in PyG's layer of GPS. By default, its heads have 64 channels, whatever the width is, so that even the "
        'narrowest layer has more parameters than the others. The narrow Performer divides the channels among the heads, as '
        f'softmax attention does. {_NETWORK} Other work was on the machine.'
    )
    title = 'Distances, eccentricities and diameters of small graphs: Performer'
    write_table('graph_properties_performer', title, note, _rows(results, jobs, _log), folder)


def families(quick: bool, folder: Path) -> None:
    models = [*MASKS[:2], 'Hop', 'GPS, softmax', 'GIN']
    jobs, results = _run('families', _jobs([f'families {name}' for name in PROPERTIES], models, 20, 2), quick, folder)
    note = (
        'Graphs of the six families of ECHO (ICLR 2026: lines, ladders, grids, trees, caterpillars, lobsters), with its '
        'diameters of 17 to 40, from the generator of this package: 2,000 graphs of at most 120 nodes for training, 260 for '
        'validation and 260 for test, a quarter of those of ECHO. Numbers are mean absolute errors, the measure and the loss: '
        'lower is better. The data are not those of ECHO, so its figures cannot be compared: the best there are 0.121 for '
        f'distances (GRIT), 4.65 for eccentricities (DRew) and 1.01 for diameters (GRIT). Batches of 64, 20 epochs. {_NETWORK}'
    )
    write_table('families', 'Distances, eccentricities and diameters of long graphs', note, _rows(results, jobs, float), folder)


def spins(quick: bool, folder: Path) -> None:
    models = ['Hop with sums', 'Hop', 'Toeplitz', 'Linear', 'softmax with distances', 'GPS, softmax', 'GIN', 'PNA']
    jobs, results = _run('spins', _jobs(['spins'], models, 20, 2), quick, folder)
    note = (
        'The task of LRIM (ICLR 2026): the energy that each spin of an Ising model costs if it turns, where all pairs interact '
        'with a strength of distance^-2.1, on a torus of 16 x 16 spins. States are our own, by a heat bath at temperatures of '
        '0.6 to 1.4 of the critical one of the mean field: 400 for training, 100 for validation, 200 for test. Models see '
        'spins and edges between neighbors; Toeplitz sees the grid. Numbers are log10 of the mean squared error over that of '
        f'zero: lower is better. Batches of 8, 20 epochs. {_NETWORK}'
    )
    write_table('spins', 'Energies of spins with interactions of long range', note, _rows(results, jobs, _log), folder)


def _jobs(tasks: Sequence[str], models: Sequence[str], epochs: int, seeds: int) -> list[Job]:
    return [Job(task, model, RATE, epochs, seed) for seed in SEEDS[:seeds] for task in tasks for model in models]


def _run(name: str, jobs: list[Job], quick: bool, folder: Path) -> tuple[list[Job], Results]:
    r"""Returns the jobs and their results. A smoke run has few of them, with few graphs and one epoch."""
    if quick:
        jobs = list({job._replace(epochs=1, graphs=64) for job in jobs if job.model in FEW and job.seed == SEEDS[0]})
    return jobs, run_all(jobs, train, {'parameters': PARAMETERS}, kept_runs(folder, name, quick))


def _rows(results: Results, jobs: Jobs, shown: Callable[[float], float]) -> list[dict[str, object]]:
    r"""Returns the rows of a table. Among the masks that trained for as long as the longest, the one with the best mean
    validation is compared with all other models of that length.
    """
    rows: list[dict[str, object]] = []
    for task in dict.fromkeys(job.task for job in jobs):
        groups: dict[tuple[bool, str], list[Job]] = {}
        shortest = min(job.epochs for job in jobs if job.task == task)
        for job in jobs:
            if job.task == task:
                groups.setdefault((job.epochs > shortest, job.model), []).append(job)
        for is_long in sorted({long for long, _ in groups}):
            mine = {model: of_model for (long, model), of_model in groups.items() if long == is_long}
            chosen = min(
                (model for model in mine if model in MASKS),
                key=lambda model: statistics.mean(shown(results[job]['validation']) for job in mine[model]),
            )
            reference = {job.seed: shown(results[job]['test']) for job in mine[chosen]}
            for model, of_model in mine.items():
                runs = [results[job] for job in of_model]
                tests = [shown(run['test']) for run in runs]
                gaps = [test - reference[job.seed] for job, test in zip(of_model, tests, strict=True) if job.seed in reference]
                rows.append(
                    {
                        'task': task,
                        'model': model,
                        'what it is': MODELS[model].words,
                        'epochs': of_model[0].epochs,
                        'layers': MODELS[model].layers,
                        'width': runs[0]['width'],
                        'parameters': runs[0]['parameters'],
                        'validation': _shown([shown(run['validation']) for run in runs]),
                        'test': _shown(tests),
                        **_difference(gaps, model == chosen),
                        'seconds': statistics.mean(run['seconds'] for run in runs),
                        'seeds': each(tests),
                    }
                )
    return rows


def _difference(gaps: list[float], is_reference: bool) -> dict[str, object]:
    r"""Returns the columns on the paired differences to the mask that was chosen, where more is worse."""
    mean, error = mean_error(gaps)
    word = 'reference' if is_reference else verdict(mean, error, ('worse', 'better')) if len(gaps) > 1 else 'one seed'
    return {'minus the mask chosen, paired': f'{mean:+.3f} ± {error:.3f}' if len(gaps) > 1 else f'{mean:+.3f}', 'verdict': word}


def _write_larger(results: Results, jobs: Jobs, folder: Path) -> None:
    groups: dict[tuple[str, str, int], list[Job]] = {}
    for job in sorted(jobs, key=lambda job: PROPERTIES.index(job.task)):
        groups.setdefault((job.task, job.model, job.epochs), []).append(job)
    rows: list[dict[str, object]] = []
    for (task, model, epochs), mine in groups.items():
        errors = [[_log(error) for error in results[job]['larger']] for job in mine]
        sizes = {size: _shown([of_job[place] for of_job in errors]) for place, size in enumerate(TASKS[task].larger)}
        growth = _shown([of_job[-1] - of_job[0] for of_job in errors])
        rows.append({'task': task, 'model': model, 'epochs': epochs, **sizes, 'growth': growth})
    note = (
        'The models of the table graph_properties, trained on graphs of 25 to 34 nodes, on larger graphs of the same families '
        'from the generator of this package, 200 of each size. Numbers are log10 of the mean squared error. Growth is that of '
        'the largest graphs minus that of graphs of the size of training.'
    )
    write_table('graph_properties_larger', 'The same on larger graphs', note, rows, folder)
    _draw(results, groups, folder)


def _draw(results: Results, groups: Mapping[tuple[str, str, int], Jobs], folder: Path) -> None:
    r"""Draws the errors of the models that train for longest."""
    figure = new_figure(4 * len(PROPERTIES), 3.5)
    for axis, task in zip(figure.subplots(1, len(PROPERTIES)), PROPERTIES, strict=True):
        for model in DRAWN:
            mine = [jobs for (of_task, of_model, _), jobs in groups.items() if (of_task, of_model) == (task, model)]
            if mine:
                longest = max(mine, key=lambda jobs: jobs[0].epochs)
                errors = [[_log(error) for error in results[job]['larger']] for job in longest]
                sizes = [int(size.split()[2]) for size in TASKS[task].larger]
                axis.plot(sizes, [statistics.mean(of_size) for of_size in zip(*errors, strict=True)], 'o-', label=model)
        axis.set(xlabel='largest number of nodes', ylabel='log10 of the squared error', title=task)
    axis.legend(fontsize=7)
    figure.savefig(folder / 'graph_properties_larger.png', dpi=120)


def _shown(values: list[float]) -> str:
    return show(values) if len(values) > 1 else f'{values[0]:.3f}'


def _log(error: float) -> float:
    return math.log10(error)
