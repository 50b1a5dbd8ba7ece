r"""Pictures of tables that no benchmark has drawn."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

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
    r"""Draws the pictures of the tables in a folder, as :obj:`<table>.png`. Tables and rows that are not there are left out.

    Args:
        folder (Path): Where :func:`~benchmarks.harness.write_table` has written.
    """
    for name, figure in FIGURES.items():
        try:
            table = Table.read(folder, name).where(figure.rows)
        except Missing:
            continue
        _draw(table, figure, folder / f'{name}.png')


def _draw(table: Table, figure: Points | Lines, path: Path) -> None:
    import matplotlib as mpl

    mpl.use('Agg')
    import matplotlib.pyplot as plt

    panel = figure.panel
    parts = {'': table} if panel is None else {f'{panel}: {own}': table.where({panel: own}) for own in table.distinct(panel)}
    parts = {title: part for title, part in parts.items() if any(_shown(part, figure))}
    if not parts:
        return
    columns = min(len(parts), 3)
    rows = -(-len(parts) // columns)
    height = 3.5 if isinstance(figure, Lines) else 0.8 + 0.24 * max(len(_shown(part, figure)) for part in parts.values())
    canvas, axes = plt.subplots(rows, columns, figsize=(5.5 * columns, height * rows), layout='constrained', squeeze=False)
    for axis, (title, part) in zip(axes.flat, parts.items(), strict=False):
        if isinstance(figure, Lines):
            _lines(axis, part, figure)
        else:
            _points(axis, part, figure)
        axis.set_title(title, fontsize='medium')
        axis.grid(alpha=0.3)
    for axis in axes.flat[len(parts) :]:
        axis.set_visible(False)
    canvas.savefig(path, dpi=100)
    plt.close(canvas)


def _points(axis: Axes, table: Table, figure: Points) -> None:
    shown = _shown(table, figure)
    # By position: two rows may have one name.
    axis.errorbar([own.mean for _, own in shown], range(len(shown)), xerr=[own.error for _, own in shown], fmt='o', capsize=3)
    names = [' · '.join(row[label] for label in figure.labels if row[label]) for row, _ in shown]
    axis.set_yticks(range(len(shown)), names, fontsize='small')
    axis.set_ylim(len(shown) - 0.5, -0.5)
    axis.set_xlabel(figure.value)
    if figure.relative:
        axis.axvline(1.0, color='black', linewidth=1)
        _logarithmic(axis, 'x')


def _lines(axis: Axes, table: Table, figure: Lines) -> None:
    for name in table.distinct(figure.line):
        shown = _shown(table.where({figure.line: name}), figure)
        axis.plot([float(row[figure.size]) for row, _ in shown], [own.mean for _, own in shown], 'o-', label=name)
    axis.set(xlabel=figure.size, ylabel=figure.value)
    axis.legend(fontsize='small')
    _logarithmic(axis, 'x')
    _logarithmic(axis, 'y')


def _logarithmic(axis: Axes, which: str) -> None:
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    axis.set(**{f'{which}scale': 'log'})
    own = axis.xaxis if which == 'x' else axis.yaxis
    low, high = own.get_view_interval()
    own.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if high < 50 * low else (1.0,)))
    own.set_major_formatter(StrMethodFormatter('{x:,.10g}'))
    own.set_minor_formatter(NullFormatter())


def _shown(table: Table, figure: Points | Lines) -> list[tuple[Row, Estimate]]:
    r"""Returns the rows that have a number or a mean with its standard error, and it."""
    found = []
    for row in table.rows:
        cell = row[figure.value]
        if cell in ('', 'nan', 'inf'):
            continue
        estimate = Estimate.parse(cell) if ' ± ' in cell else Estimate(float(cell), 0.0)
        if not (isinstance(figure, Points) and figure.relative and estimate[:2] == (1.0, 0.0)):
            found.append((row, estimate))
    return found
