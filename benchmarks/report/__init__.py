r"""The report on all results. Its sentences stand in the Markdown files of this folder and refer to cells of the tables."""

from __future__ import annotations

from pathlib import Path

from benchmarks.report.document import render_readme, render_report

__all__ = ['README', 'RESULTS', 'write_report']

RESULTS = Path(__file__).parents[1] / 'results'
README = Path(__file__).parents[2] / 'README.md'


def write_report(folder: Path, quick: bool = False) -> None:
    r"""Writes :obj:`REPORT.md` into a folder of results. For the project's own folder, which must have all tables, also writes
    the README's section.
    """
    ours = folder.resolve() == RESULTS
    (folder / 'REPORT.md').write_text(render_report(folder, quick, may_lack_tables=not ours))
    if ours:
        README.write_text(render_readme(folder, README.read_text()))
