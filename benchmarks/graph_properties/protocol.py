r"""Runs the models, and writes their tables: :obj:`python -m benchmarks graph_properties --full`."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping
from pathlib import Path

from benchmarks.graph_properties.data import LARGER, TASKS
from benchmarks.graph_properties.networks import MODELS
from benchmarks.graph_properties.training import BATCH, PARAMETERS, Job, train
from benchmarks.harness import each, kept_runs, new_figure, run_all, show, write_table
from pyg_topomask.apps.runs.compare import mean_error, verdict

__all__ = ['run']

SEEDS = (41, 95)
#: The learning rate of the papers.
RATE, EPOCHS = 3e-3, 15
#: Models that take more than a minute of a core, which have one seed.
SLOW = ('GAT', 'PNA', 'A-DGN')
MASKS = ('Hop with sums, geometric', 'Hop with sums', 'Hop')
#: The models of the picture of larger graphs.
DRAWN = ('Hop with sums, geometric', 'Hop', 'softmax with distances', 'GIN', 'PNA', 'A-DGN')
#: The models of a smoke run.
FEW = ('Hop with sums, geometric', 'GIN')
Result = dict[str, float | list[float]]


def run(quick: bool, folder: Path) -> None:
    models, graphs, epochs = (FEW, 64, 1) if quick else (tuple(MODELS), None, EPOCHS)
    jobs = [
        Job(task, model, RATE, epochs, seed, graphs)
        for seed in SEEDS
        for task in TASKS
        for model in models
        if seed == SEEDS[0] or model not in SLOW
    ]
    path, settings = kept_runs(folder, 'graph_properties', quick), {'batch': BATCH, 'parameters': PARAMETERS}
    results = run_all(jobs, train, settings, path)
    _write(results, jobs, folder)


def _write(results: Mapping[Job, Result], jobs: list[Job], folder: Path) -> None:
    rows, larger = [], []
    for task in TASKS:
        of_task = {model: [job for job in jobs if (job.task, job.model) == (task, model)] for model in MODELS}
        of_task = {model: mine for model, mine in of_task.items() if mine}
        chosen = min(
            (model for model in of_task if model in MASKS),
            key=lambda model: statistics.mean(_log(results[job]['validation']) for job in of_task[model]),
        )
        reference = {job.seed: _log(results[job]['test']) for job in of_task[chosen]}
        for model, mine in of_task.items():
            runs = [results[job] for job in mine]
            tests = [_log(each['test']) for each in runs]
            rows.append(
                {
                    'task': task,
                    'model': model,
                    'what it is': MODELS[model].words,
                    'layers': MODELS[model].layers,
                    'width': runs[0]['width'],
                    'parameters': runs[0]['parameters'],
                    'validation': _shown([_log(each['validation']) for each in runs]),
                    'test': _shown(tests),
                    **_difference([test - reference[job.seed] for job, test in zip(mine, tests, strict=True)], model == chosen),
                    'seconds': statistics.mean(float(each['seconds']) for each in runs),  # type: ignore[arg-type]
                    'seeds': each(tests),
                }
            )
            sizes = {
                f'{least} to {most} nodes': _shown([_log(each['larger'][place]) for each in runs])  # type: ignore[index]
                for place, (least, most) in enumerate(LARGER)
            }
            growth = [_log(each['larger'][-1]) - _log(each['larger'][0]) for each in runs]  # type: ignore[index]
            larger.append({'task': task, 'model': model, **sizes, 'growth': _shown(growth)})
    note = (
        'The graphs, the sizes and the loss are those of the A-DGN paper (ICLR 2023), from the generator of the PNA paper with '
        'a draw of our own: 5,120 graphs of 25 to 34 nodes for training, 640 for validation, 1,280 for test. Numbers are log10 '
        'of the mean squared error, mean ± standard error over seeds: lower is better. All models have the same network around '
        'their layers (batch norm, residual connections, feed-forward blocks; GPS has its own), as many parameters as the '
        f'width allows to come near {PARAMETERS:,}, {EPOCHS} epochs with a one-cycle learning rate of at most {RATE}, which is '
        f'the rate of the papers, in batches of {BATCH}, Adam, and weight decay 1e-6. Nothing was tuned model by model. The '
        'results are those of the epoch with the best validation. Among masks, the one with the best mean validation is '
        'compared with all others; a difference below two standard errors is "not distinguishable". Models that take more than '
        'a minute of a core have one seed. Seconds are those of a processor in training, on one thread.'
    )
    write_table('graph_properties', 'Distances, eccentricities and diameters of small graphs', note, rows, folder)
    note = (
        'The models of the table graph_properties, trained on graphs of 25 to 34 nodes, on larger graphs of the same families '
        'from the generator of this package, 200 of each size. Numbers are log10 of the mean squared error. Growth is that of '
        'the largest graphs minus that of graphs of the size of training.'
    )
    write_table('graph_properties_larger', 'The same on larger graphs', note, larger, folder)
    _draw(results, jobs, folder)


def _difference(gaps: list[float], is_reference: bool) -> dict[str, object]:
    r"""Returns the columns on the paired differences to the mask that was chosen, where more is worse."""
    mean, error = mean_error(gaps)
    word = 'reference' if is_reference else verdict(mean, error, ('worse', 'better')) if len(gaps) > 1 else 'one seed'
    return {'minus the mask chosen, paired': f'{mean:+.3f} ± {error:.3f}' if len(gaps) > 1 else f'{mean:+.3f}', 'verdict': word}


def _draw(results: Mapping[Job, Result], jobs: list[Job], folder: Path) -> None:
    figure = new_figure(4 * len(TASKS), 3.5)
    for axis, task in zip(figure.subplots(1, len(TASKS)), TASKS, strict=True):
        for model in DRAWN:
            runs = [results[job] for job in jobs if (job.task, job.model) == (task, model)]
            if runs:
                means = [statistics.mean(_log(each['larger'][size]) for each in runs) for size in range(len(LARGER))]  # type: ignore[index]
                axis.plot([most for _, most in LARGER], means, 'o-', label=model)
        axis.set(xlabel='largest number of nodes', ylabel='log10 of the squared error', title=task)
    axis.legend(fontsize=7)
    figure.savefig(folder / 'graph_properties_larger.png', dpi=120)


def _shown(values: list[float]) -> str:
    return show(values) if len(values) > 1 else f'{values[0]:.3f}'


def _log(error: object) -> float:
    return math.log10(error)  # type: ignore[arg-type]
