r"""The report on all results: :obj:`REPORT.md` in a folder of results, and the README's section on them."""

from __future__ import annotations

from pathlib import Path

from benchmarks.report.document import render_report
from benchmarks.report.figures import draw_figures
from benchmarks.report.readme import insert, render_results

__all__ = ['README', 'RESULTS', 'write_report']

RESULTS = Path(__file__).parents[1] / 'results'
README = Path(__file__).parents[2] / 'README.md'


def write_report(folder: Path, quick: bool = False) -> None:
    r"""Draws pictures and writes :obj:`REPORT.md` into a folder of results; for the project's own the README's section too."""
    draw_figures(folder)
    (folder / 'REPORT.md').write_text(render_report(folder, quick))
    if folder.resolve() == RESULTS:
        README.write_text(insert(README.read_text(), render_results(folder)))
