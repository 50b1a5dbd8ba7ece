r"""Tables and pictures of what a mask gains."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.accuracy.networks import Setting
from benchmarks.accuracy.plans import MASKED, Plan
from benchmarks.accuracy.tasks import Task
from benchmarks.accuracy.training import Run
from benchmarks.harness import compare, pyplot, show, write_table

__all__ = ['write_task']

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
                    'rate': setting.rate,
                    'dropout': setting.dropout,
                    'seconds': statistics.mean(run.seconds for run in results[setting]),
                    'validation': show([run.validation for run in results[setting]], 4),
                    'chosen': 'yes' if setting == chosen[group] else '',
                    f'test {task.metric.name}': show(scores, 4),
                    **compare(
                        scores[:shared], reference[:shared], 'minus the mask chosen, paired', setting == chosen[MASKED], 4
                    ),
                    'splits': len(scores),
                    'seeds': ' '.join(f'{score:.4f}' for score in scores),
                }
            )
    note = (
        f'{task.note} {len(reference)} splits or seeds. The epoch with the best validation counts. Of each group the setting '
        'with the best mean validation is chosen. Every setting of the plan is a row. The plan was made after single runs on '
        'one or two splits, which accuracy_tries.csv lists. Differences are paired by split, test minus test, over the splits '
        'of the row. A difference below two standard errors is "not distinguishable". Mean ± standard error. Adam with a '
        'one-cycle learning rate. Seconds are those of a processor in training, on one thread, without evaluation.'
    )
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
    plt = pyplot()
    figure, axes = plt.subplots(figsize=(7, 4.5))
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
    figure.tight_layout()
    figure.savefig(folder / f'accuracy_{name}.png', dpi=120)
    plt.close(figure)
