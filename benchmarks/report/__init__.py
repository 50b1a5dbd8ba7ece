r"""The report on all results: what our tables find of the claims of the papers. Its words stand in the modules of the papers
and in the Markdown files of this folder.
"""

from __future__ import annotations

from pathlib import Path

from benchmarks.report.document import render_comparisons, render_report, render_results

__all__ = ['PAGE', 'RESULTS', 'write_report']

RESULTS = Path(__file__).parents[1] / 'results'
#: The page of documentation on the results.
PAGE = Path(__file__).parents[2] / 'docs' / 'results.md'


def write_report(folder: Path, quick: bool = False) -> None:
    r"""Writes :obj:`REPORT.md` and :obj:`comparisons.md` into a folder of results. For the project's own folder, which must
    have all tables, also writes the page :obj:`docs/results.md`.
    """
    ours = folder.resolve() == RESULTS
    (folder / 'REPORT.md').write_text(render_report(folder, quick, may_lack_tables=not ours))
    (folder / 'comparisons.md').write_text(render_comparisons(folder, may_lack_tables=not ours))
    if ours:
        PAGE.write_text(render_results(folder, PAGE.read_text()))
