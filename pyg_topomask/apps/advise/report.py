r"""What trainings with and without a mask show, and the table, the picture and the page of an advice."""

from __future__ import annotations

import base64
import html
import io
import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from string import Template
from typing import Any

from pyg_topomask.apps.runs.compare import mean_error, verdict
from pyg_topomask.apps.runs.tables import TableRow
from pyg_topomask.apps.viz.drawing import new_figure

#: Metrics of finished trainings by their seed.
Seeds = Mapping[int, Mapping[str, Any]]
#: More seeds than this many times those at hand are not asked for.
MORE = 4


@dataclass(frozen=True)
class Chance:
    r"""What a model reaches that learns nothing from the graphs."""

    labels: Sequence[int] = ()  # the numbers of labels of each class of the test split, if the metric is the accuracy
    error: float = math.inf  # in a regression, the test metric of the constant that is best in training


@dataclass(frozen=True)
class Verdict:
    r"""The verdict about a mask, in one word and one sentence, and the best models by validation, with a mask and without."""

    word: str  # "gain", "loss", "none" (no gain seen) or "undecided"
    sentence: str
    masked: str
    without: str
    gain: float  # the mean difference of the test metric over the seeds of both, positive if the mask is better
    error: float  # its standard error, NaN for one seed


def best_model(results: Mapping[str, Seeds], metric: str, maximize: bool) -> str:
    r"""Returns the model with the best mean of a validation metric."""
    sign = 1 if maximize else -1
    return max(results, key=lambda name: sign * statistics.mean(run[f'val_{metric}'] for run in results[name].values()))


def gains(masked: Seeds, without: Seeds, metric: str, maximize: bool) -> list[float]:
    r"""Returns the differences of the test metric, or else that of validation, for the seeds of both, positive if the first is
    better.
    """
    sign = 1 if maximize else -1
    return [sign * (tested(masked[seed], metric) - tested(without[seed], metric)) for seed in masked if seed in without]


def tested(run: Mapping[str, Any], metric: str) -> float:
    r"""Returns the test metric of a training, or that of validation if its data have no test split."""
    return float(run.get(f'test_{metric}', run[f'val_{metric}']))


def decide(
    masked: Mapping[str, Seeds],
    without: Mapping[str, Seeds],
    metric: str,
    maximize: bool,
    by_chance: Chance | None = None,
    late: Mapping[str, float] | None = None,
) -> Verdict:
    r"""Compares the best model with a mask with the best one without, both chosen by validation, on their common seeds. A
    difference counts from two standard errors on. One of the models has to be better than the most frequent class or a
    constant. With the numbers of labels of each class, the error includes that of so few labels, as if the models erred
    independently. A gain that is not larger than what the model without a mask still gained :obj:`late` in its training may
    vanish in a longer one.
    """
    by_chance = by_chance or Chance()
    labels = by_chance.labels
    one, other = best_model(masked, metric, maximize), best_model(without, metric, maximize)
    differences = gains(masked[one], without[other], metric, maximize)
    gain, error = mean_error(differences)
    means = [statistics.mean(tested(run, metric) for run in runs.values()) for runs in (masked[one], without[other])]
    chance = math.sqrt(sum(mean * (1 - mean) for mean in means) / sum(labels)) if labels else 0.0

    against = f'the best without a mask ({other})'
    count = len(differences)

    def has(number: str, than: str) -> str:
        if maximize:
            return f'{one} has {"-" if gain < 0 else "+"}{number} {metric} over {than}'
        return f'{one} has {number} {metric} {"more" if gain < 0 else "less"} than {than}'

    seen = f'Undecided: {has(f"{abs(gain):.3f} ± {error:.3f}", against)}'

    def say() -> tuple[str, str]:
        if min(means) >= by_chance.error:
            no_better = f'no model is better than a constant ({metric} {by_chance.error:.3g})'
            remedy = 'Train longer, add features, or divide the labels by their standard deviation.'
            return 'none', f'No gain seen: {no_better}. {remedy}'
        if labels and max(means) <= (majority := max(labels) / sum(labels)):
            no_better = f'no model is better than the most frequent class ({majority:.0%})'
            return 'none', f'No gain seen: {no_better}. Train longer, or add features.'
        if math.isnan(error):
            single = has(f'{abs(gain):.3g}', other)
            return 'undecided', f'Undecided: {single} with one seed. Two more would show an error.'
        if error == 0 and gain != 0:  # of few test labels: how far the difference varies has not been seen
            same = f'{has(f"{abs(gain):.3f}", other)} in each of {count} seeds'
            return 'undecided', f'Undecided: {same}, so that its error is not known. More seeds would show it.'
        shown = f'{abs(gain):.3f} ± {error:.3f} {metric}'
        found = verdict(gain, math.hypot(error, chance))
        if found == 'better' and late is not None and gain <= late[other]:
            learns = f'it would gain {late[other]:.3f} at the rate of its last epochs'
            return 'undecided', f'{seen}, which still learns: {learns}. Train longer.'
        if found == 'better':
            return 'gain', f'{one} gains {shown} over {against}.' if maximize else f'{one} has {shown} less than {against}.'
        if found == 'worse':
            return 'loss', f'No mask helps: {one}, the best with a mask, loses {shown} to {against}.'
        room = gain**2 - (2 * chance) ** 2  # for the error over seeds, which more seeds make smaller
        if room <= 0 and verdict(gain, error) == 'better':
            return 'undecided', f'{seen}, but {sum(labels)} test labels are too few to tell.'
        needed = math.ceil(4 * statistics.variance(differences) / room) if gain > 0 and room > 0 else math.inf
        if needed <= MORE * count:
            more = max(1, needed - count)
            return 'undecided', f'{seen}. If that is the gain, {more} more seed{"s" * (more > 1)} would decide.'
        if gain == error == 0:
            return 'none', f'No gain seen: {one} and {other} have the same {metric} in all {count} seeds.'
        bound = max(0.0, gain) + 2 * math.hypot(error, chance)
        return 'none', f'No gain seen: {one} and {other} are not distinguishable. A gain above {bound:.2g} would have shown.'

    return Verdict(*say(), one, other, gain, error)


def table(report: Mapping[str, Any]) -> list[TableRow]:
    r"""Returns a row for each model."""
    rows: list[TableRow] = []
    for model in report['models']:
        memory = [value for value in model['memory'] if value is not None]
        rows.append(
            {
                'model': model['model'],
                'seeds': len(model['seeds']),
                'epochs': model['epochs'],
                f'validation {report["metric"]}': _shown(model['validation']),
                f'test {report["metric"]}': _shown(model['test']) or f'failed: {model["failure"]}',
                'parameters': model['parameters'],
                'seconds': round(statistics.mean(model['seconds']), 1) if model['seconds'] else None,
                'MiB': round(max(memory) / 2**20) if memory else None,
            }
        )
    return rows


def _shown(values: Sequence[float]) -> str:
    if not values:
        return ''
    mean, error = mean_error(values)
    return f'{mean:.4f}' if len(values) == 1 else f'{mean:.4f} ± {error:.4f}'


def draw(report: Mapping[str, Any]) -> Any:
    r"""Draws the test metric of each model with its standard error, and that of each seed. Needs Matplotlib."""
    models = [model for model in report['models'] if model['test']]
    figure = new_figure(8, 0.45 * len(models) + 1.2)
    axis = figure.subplots()
    for place, model in enumerate(models):
        mean, error = mean_error(model['test'])
        color = 'tab:blue' if model['masked'] else 'tab:gray'
        axis.plot(model['test'], [place] * len(model['test']), '|', color=color, markersize=9)
        if model['model'] == report['verdict']['without']:
            axis.axvline(mean, color='0.75', zorder=0)
        axis.errorbar(mean, place, xerr=None if len(model['test']) == 1 else error, fmt='o', color=color, capsize=3)
    axis.set_yticks(range(len(models)), [model['model'] for model in models])
    axis.invert_yaxis()
    axis.set_xlabel(f'test {report["metric"]}, with standard errors (blue: with a mask; line: the best without)')
    return figure


def page(report: Mapping[str, Any]) -> str:
    r"""Returns one page in HTML with all of an advice, which loads nothing."""
    rows = table(report)
    head = ''.join(f'<th>{html.escape(column)}</th>' for column in rows[0])
    body = ''.join(
        '<tr>' + ''.join(f'<td>{html.escape("" if cell is None else str(cell))}</td>' for cell in row.values()) + '</tr>'
        for row in rows
    )
    try:
        buffer = io.BytesIO()
        draw(report).savefig(buffer, format='png', dpi=120)
        picture = f'<img alt="test {report["metric"]} of each model" src="data:image/png;base64,'
        picture += f'{base64.b64encode(buffer.getvalue()).decode()}">'
    except ImportError as error:
        picture = f'<p>{html.escape(str(error))}</p>'
    template = Template((files('pyg_topomask.apps.advise') / 'report.html').read_text(encoding='utf-8'))
    return template.substitute(
        title=html.escape(report['title']),
        verdict=html.escape(report['verdict']['sentence']),
        sentences=''.join(f'<p>{html.escape(sentence)}</p>' for sentence in report['sentences']),
        head=head,
        body=body,
        picture=picture,
        notes=''.join(f'<li>{html.escape(note)}</li>' for note in report['notes']),
        winner=html.escape(report['winner']),
        command=html.escape(report['command']),
        yaml=html.escape(report['yaml']),
    )
