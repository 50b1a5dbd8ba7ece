r"""Draws the tables that no benchmark has drawn."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.harness import new_figure
from benchmarks.report.tables import Estimate, Missing, Row, Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ['FIGURES', 'Lines', 'Points', 'draw_figures']


@dataclass(frozen=True)
class Points:
    r"""One point for each row, which cells of some columns name, in a panel for each value of another. Ratios to a baseline
    stand beside a line at 1 in place of its own rows.
    """

    labels: tuple[str, ...]
    value: str
    panel: str | None = None
    relative: bool = False
    rows: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Lines:
    r"""One line for each method, over a column of sizes, in a panel for each value of another column; both axes logarithmic."""

    size: str
    value: str
    line: str
    panel: str | None = None
    rows: Mapping[str, str] = field(default_factory=dict)


#: What is drawn of each table.
FIGURES: dict[str, Points | Lines] = {
    'asymmetric': Lines('nodes', 'forward + backward', 'method', 'graph'),
    'before_after': Points(('path',), 'before / after', relative=True),
    'before_after_layers': Points(('layer',), 'prepared, before / after', 'graph', relative=True),
    'digits': Points(('gt.layer_type',), 'test accuracy'),
    'gkat_depth': Points(('model', 'layers'), 'validation accuracy'),
    'gkat_equal_time': Points(('model',), 'validation accuracy', 'task'),
    'gkat_speed': Lines('nodes', 'forward + backward, ms', 'layer'),
    'gkat_walk_length': Points(('hops',), 'validation accuracy', 'task'),
    'graphgps': Points(('attention',), 'time, Transformer = 1', 'data set', relative=True),
    'grf_features': Points(('graph', 'nodes', 'method'), 'speed / baseline', 'task', relative=True),
    'heat': Points(('graph', 'kind', 'lambda'), 'time / scipy', 'nodes', relative=True),
    'hot_paths': Points(('path',), 'plain / pyg_topomask', relative=True),
    'kmip_accuracy': Points(('model',), 'test accuracy'),
    'kmip_full_size': Points(('model',), 'test accuracy'),
    'kmip_all_peptides': Points(('model',), 'test average precision'),
    'kmip_batches': Points(('graphs', 'nodes each', 'method'), 'training time / SDPA', relative=True),
    'kmip_objects': Points(('model',), 'test accuracy'),
    'kmip_peptides': Points(('model',), 'test average precision'),
    'memory': Lines('m = d', 'peak bytes per node and head', 'method'),
    'recommend_speed': Points(('model',), 'seconds per epoch'),
    'sampler': Points(('nodes', 'method'), 'speed / torch_sparse', 'graph', relative=True),
    'scale': Points(('attention', 'step'), 'bytes per node'),
    'toeplitz': Points(('window', 'heads', 'columns'), 'dense / ours', 'grid', relative=True),
    'tree': Lines('nodes', 'ms', 'method', 'tree', {'numbered': 'at random', 'columns': '1'}),
    'tree_distance': Lines('nodes', 'ms', 'method', 'tree'),
    'tu': Points(('model', 'read-out'), 'test accuracy', 'data'),
    'video': Points(('attention',), 'test accuracy'),
}


def draw_figures(folder: Path) -> None:
    r"""Draws the tables in a folder, as :obj:`<table>.png`. Tables and rows that are not there are left out.

    Args:
        folder (Path): Where :func:`~benchmarks.harness.write_table` has written.
    """
    for name, figure in FIGURES.items():
        try:
            rows = Table(folder, name)(**figure.rows).rows
        except Missing:
            continue
        panels = _group([row for row in rows if _is_shown(row, figure)], figure.panel)
        if panels:
            _draw(panels, figure, folder / f'{name}.png')


def _group(rows: list[Row], column: str | None) -> dict[str, list[Row]]:
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(row.text(column) if column else '', []).append(row)
    return groups


def _is_shown(row: Row, figure: Points | Lines) -> bool:
    r"""Whether a row has a number, other than that of the baseline which a line at 1 stands for."""
    return bool(row.text(figure.value)) and not (
        isinstance(figure, Points) and figure.relative and _estimate(row, figure) == (1.0, 0.0)
    )


def _estimate(row: Row, figure: Points | Lines) -> tuple[float, float]:
    cell = row[figure.value]
    return (cell.mean, cell.error) if isinstance(cell, Estimate) else (cell, 0.0)


def _draw(panels: dict[str, list[Row]], figure: Points | Lines, path: Path) -> None:
    columns = min(len(panels), 3)
    lines = -(-len(panels) // columns)
    height = 3.5 if isinstance(figure, Lines) else 0.8 + 0.24 * max(map(len, panels.values()))
    canvas = new_figure(5.5 * columns, height * lines)
    axes = canvas.subplots(lines, columns, squeeze=False)
    for axis, (title, rows) in zip(axes.flat, panels.items(), strict=False):
        if isinstance(figure, Lines):
            _draw_lines(axis, rows, figure)
        else:
            _draw_points(axis, rows, figure)
        axis.set_title(f'{figure.panel}: {title}' if figure.panel else '', fontsize='medium')
        axis.grid(alpha=0.3)
    for axis in axes.flat[len(panels) :]:
        axis.set_visible(False)
    canvas.savefig(path, dpi=100)


def _draw_points(axis: Axes, rows: list[Row], figure: Points) -> None:
    means, errors = zip(*(_estimate(row, figure) for row in rows), strict=True)
    # By position: two rows may have one name.
    axis.errorbar(means, range(len(rows)), xerr=errors, fmt='o', capsize=3)
    names = [' · '.join(row.text(label) for label in figure.labels if row.text(label)) for row in rows]
    axis.set_yticks(range(len(rows)), names, fontsize='small')
    axis.set_ylim(len(rows) - 0.5, -0.5)
    axis.set_xlabel(figure.value)
    if figure.relative:
        axis.axvline(1.0, color='black', linewidth=1)
        _make_logarithmic(axis, 'x')


def _draw_lines(axis: Axes, rows: list[Row], figure: Lines) -> None:
    for name, points in _group(rows, figure.line).items():
        axis.plot([row[figure.size] for row in points], [_estimate(row, figure)[0] for row in points], 'o-', label=name)
    axis.set(xlabel=figure.size, ylabel=figure.value)
    axis.legend(fontsize='small')
    _make_logarithmic(axis, 'x')
    _make_logarithmic(axis, 'y')


def _make_logarithmic(axis: Axes, direction: str) -> None:
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    axis.set(**{f'{direction}scale': 'log'})
    scale = axis.xaxis if direction == 'x' else axis.yaxis
    low, high = scale.get_view_interval()
    scale.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if high < 50 * low else (1.0,)))
    scale.set_major_formatter(StrMethodFormatter('{x:,.10g}'))
    scale.set_minor_formatter(NullFormatter())
