r"""The table, the picture and the page of an advice."""

from __future__ import annotations

import base64
import html
import io
import statistics
from collections.abc import Mapping, Sequence
from importlib.resources import files
from string import Template
from typing import Any

from pyg_topomask.apps.runs.compare import mean_error
from pyg_topomask.apps.runs.tables import TableRow
from pyg_topomask.apps.viz.drawing import new_figure


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
