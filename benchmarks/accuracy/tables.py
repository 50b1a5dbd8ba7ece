r"""Tables and pictures of what a mask gains."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from itertools import count, takewhile
from pathlib import Path
from typing import NamedTuple

from benchmarks.accuracy.networks import VARIANTS, Setting
from benchmarks.accuracy.plans import DEPTHS, KINDS, LAYERS, MASKED, VARIATIONS, WALKS, Plan
from benchmarks.accuracy.remarks import REMARKS
from benchmarks.accuracy.store import Job
from benchmarks.accuracy.tasks import TASKS, Task
from benchmarks.accuracy.training import Run
from benchmarks.harness import compare, each, new_figure, show, write_table

__all__ = ['splits_of', 'write_depths', 'write_families', 'write_task']

Row = dict[str, object]


def write_task(name: str, task: Task, plan: Plan, results: Mapping[Setting, Sequence[Run]], folder: Path) -> None:
    r"""Writes the table :obj:`accuracy_<name>` of all settings of a plan, and its picture.

    Args:
        name (str): The name of the task.
        task (Task): The task.
        plan (Plan): The settings by group.
        results (dict): The runs of each setting, split by split.
        folder (Path): Where they are written.
    """
    chosen = {group: _best(settings, results) for group, settings in plan.groups.items()}
    reference = [run.test for run in results[chosen[MASKED]]]
    rows = []
    for group, settings in plan.groups.items():
        for setting in settings:
            scores = [run.test for run in results[setting]]
            shared = min(len(scores), len(reference))
            rows.append(
                {
                    'group': group,
                    'model': setting.name,
                    'layers': setting.layers,
                    'width': setting.width,
                    'parameters': results[setting][0].parameters,
                    'epochs': setting.epochs,
                    'rate': f'{setting.rate} ({setting.schedule})',
                    'dropout': setting.dropout,
                    'seconds': statistics.mean(run.seconds for run in results[setting]),
                    'validation': show([run.validation for run in results[setting]], 4),
                    'chosen': 'yes' if setting == chosen[group] else '',
                    f'test {task.metric.name}': show(scores, 4),
                    **compare(
                        scores[:shared], reference[:shared], 'minus the mask chosen, paired', setting == chosen[MASKED], 4
                    ),
                    'splits': len(scores),
                    'seeds': each(scores, 4),
                }
            )
    after_variants = ', and with "square" after the variants of the layer (accuracy_variants), whose test scores were known'
    square = after_variants if any(setting.variant == 'square' for setting in plan.groups[MASKED]) else ''
    gps = (
        '"gps" is GPSConv of PyG, with encodings: 20 return probabilities of walks, and 8 eigenvectors of the Laplacian. '
        if any(setting.variant == 'gps' for setting in plan.settings())
        else ''
    )
    note = (
        f'{task.note} {len(reference)} splits or seeds, mean ± standard error. Results are those of the epoch with the best '
        'validation. In each group, the setting with the best mean validation is chosen. The table lists every setting of the '
        f'plan, which was made after single runs on one or two splits (accuracy_tries.csv){square}. Differences are test minus '
        'test, paired by split, over the splits of the row. A difference below two standard errors is "not distinguishable". '
        f'{gps}Adam. Seconds are those of a processor in training, on one thread, without evaluation.'
    )
    if name in REMARKS:
        note += f'\n\n{REMARKS[name]}'
    write_table(f'accuracy_{name}', f'What a mask gains: {name}', note, rows, folder)
    _draw(name, task, plan, results, chosen, folder)


def _best(settings: Sequence[Setting], results: Mapping[Setting, Sequence[Run]]) -> Setting:
    r"""Returns the setting with the best mean validation, over the splits that all settings of the group have."""
    splits = min(len(results[setting]) for setting in settings)
    return max(settings, key=lambda setting: statistics.mean(run.validation for run in results[setting][:splits]))


def _draw(
    name: str,
    task: Task,
    plan: Plan,
    results: Mapping[Setting, Sequence[Run]],
    chosen: Mapping[str, Setting],
    folder: Path,
) -> None:
    figure = new_figure(7, 4.5)
    axes = figure.subplots()
    for number, (group, settings) in enumerate(plan.groups.items()):
        for setting in settings:
            scores = [run.test for run in results[setting]]
            error = statistics.stdev(scores) / len(scores) ** 0.5
            axes.errorbar(
                statistics.mean(run.seconds for run in results[setting]),
                statistics.mean(scores),
                2 * error,
                fmt='o' if setting == chosen[group] else '.',
                color=f'C{number}',
                capsize=3,
                label=f'{group}: {setting.name}, {setting.layers} layers' if setting == chosen[group] else None,
            )
    axes.set(xscale='log', xlabel='seconds of training', ylabel=f'test {task.metric.name}', title=name)
    axes.legend(fontsize=7)
    figure.savefig(folder / f'accuracy_{name}.png', dpi=120)


class Family(NamedTuple):
    r"""A table of the settings of some tasks, each compared with the first of its task, which is called :obj:`first`."""

    table: str
    title: str
    settings: Mapping[str, Sequence[Setting]]
    first: str
    describe: Callable[[Setting], Row]
    note: str


def _variant(setting: Setting) -> Row:
    return {'variant': setting.variant, 'what it is': VARIANTS[setting.variant]}


def _mask(setting: Setting) -> Row:
    return {'mask': setting.attention}


FAMILIES = (
    Family(
        'accuracy_variants',
        'What matters in a layer of masked attention',
        VARIATIONS,
        'sum',
        _variant,
        'Networks of Hop attention without message passing. Each row changes one thing in the variant "sum" of its task. '
        'Mean ± standard error. Differences are test minus test, paired by split. A difference below two standard errors is '
        '"not distinguishable". The other settings are those of the tables of the tasks, and were not tuned again. A default '
        'would change if a variant were better by two standard errors on three tasks, and worse on none.',
    ),
    Family(
        'accuracy_walks',
        'What walks cost in accuracy',
        WALKS,
        'powers',
        _mask,
        'Networks of attention without message passing, masked by a power series of the edges with one power per head at the '
        'start. It is exact ("powers"), or estimated by random walks, whose number from each node is in the name. They halt '
        'with probability 0.5. Those of "long-grf" halt with probability 0.1, and repel each other. A walk has at most half '
        'the hops, because the mask joins two walks. Differences are paired by split; mean ± standard error.',
    ),
    Family(
        'accuracy_kinds',
        'Masks of all kinds on trees',
        KINDS,
        'hop',
        _mask,
        'The networks of the tables of both tasks, without message passing, with other masks in place of Hop. The masks have '
        'the reach of Hop, and their heads start at different distances if the mask can; "adjacency" reaches one edge a layer. '
        '"rwgnk-16" and "long-grf-16" have 16 random walks from each node. "tree" also gives a weight to all nodes beyond the '
        'reach. "linear" is unmasked. The walks of "long-grf-16" were chosen on split 0 of lookups. '
        'Nothing else was tuned. "tree" learns the logarithms of its weights. With signed weights (positive=False), it did not '
        'learn lookups in six runs (accuracy_tries.csv). Differences are paired by split; mean ± standard error.',
    ),
)


def write_families(runs: Mapping[Job, Run], folder: Path) -> None:
    r"""Writes the tables of :obj:`FAMILIES`, which change one thing in the network of a task."""
    for family in FAMILIES:
        write_table(family.table, family.title, family.note, _beside_the_first(family, runs), folder)


def _beside_the_first(family: Family, runs: Mapping[Job, Run]) -> list[Row]:
    r"""Returns a row for each setting of each task that has three splits or more, compared with the first setting."""
    rows: list[Row] = []
    for name, settings in family.settings.items():
        reference = splits_of(runs, name, settings[0])
        for setting in settings:
            scores = splits_of(runs, name, setting)
            shared = min(len(scores), len(reference))
            if shared > 2:
                tests = [run.test for run in scores]
                base = [run.test for run in reference[:shared]]
                rows.append(
                    {
                        'task': name,
                        **family.describe(setting),
                        'validation': show([run.validation for run in scores], 4),
                        'test': show(tests, 4),
                        **compare(tests[:shared], base, f'minus {family.first}, paired', setting == settings[0], 4),
                        **_size(scores),
                    }
                )
    return rows


def _size(runs: Sequence[Run]) -> Row:
    r"""Returns the last cells of a row."""
    return {
        'seconds': statistics.mean(run.seconds for run in runs),
        'parameters': runs[0].parameters,
        'splits': len(runs),
        'seeds': each([run.test for run in runs], 4),
    }


def write_depths(runs: Mapping[Job, Run], folder: Path) -> None:
    r"""Writes the table :obj:`accuracy_depth` and its picture: accuracy against the number of layers.

    Args:
        runs (dict): The finished runs.
        folder (Path): Where they are written.
    """
    figure = new_figure(4 * len(DEPTHS), 3.5)
    axes = figure.subplots(1, len(DEPTHS), squeeze=False)
    rows: list[Row] = []
    for axis, (name, settings) in zip(axes[0], DEPTHS.items(), strict=True):
        for number, model in enumerate(dict.fromkeys(setting.name for setting in settings)):
            of_model = {
                each: scores for each in settings if each.name == model and len(scores := splits_of(runs, name, each)) > 1
            }
            for setting, scores in of_model.items():
                tests = [run.test for run in scores]
                rows.append(
                    {
                        'task': name,
                        'model': model,
                        'layers': setting.layers,
                        'epochs': setting.epochs,
                        'test': show(tests, 4),
                        **_size(scores),
                    }
                )
            means = [statistics.mean(run.test for run in scores) for scores in of_model.values()]
            axis.plot([each.layers for each in of_model], means, 'o-', color=f'C{number}', label=model)
        axis.set(xscale='log', xlabel='layers', ylabel=f'test {TASKS[name].metric.name}', title=name, xticks=LAYERS)
        axis.set_xticklabels(LAYERS)
        axis.legend(fontsize=7)
    figure.savefig(folder / 'accuracy_depth.png', dpi=120)
    note = (
        'Hop attention without message passing, and message passing without attention, by the number of layers. Mean ± '
        'standard error. Seconds are those of a processor in training, on one thread.'
    )
    write_table('accuracy_depth', 'Accuracy by the number of layers', note, rows, folder)


def splits_of(runs: Mapping[Job, Run], name: str, setting: Setting) -> list[Run]:
    r"""Returns the runs of a setting, split by split, as far as no split is missing."""
    jobs = ((name, setting, split) for split in count())
    return [runs[job] for job in takewhile(runs.__contains__, jobs)]
