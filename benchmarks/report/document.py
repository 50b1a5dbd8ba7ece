r"""The report, its comparisons, and the page :obj:`docs/results.md`: the Jinja templates of this folder, filled from tables."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from benchmarks.registry import BENCHMARKS
from benchmarks.report import general_theory, grf, kmip, mgformer, rules
from benchmarks.report.claims import Paper
from benchmarks.report.tables import Table, form

__all__ = ['PAPERS', 'read_tables', 'render_comparisons', 'render_report', 'render_results']

PAPERS = (general_theory.PAPER, grf.PAPER, mgformer.PAPER, kmip.PAPER)
MARKERS = ('<!-- results: begin -->', '<!-- results: end -->')


def render_report(folder: Path, quick: bool = False, may_lack_tables: bool = False) -> str:
    r"""Returns the claims of the papers and what the tables of a folder find of them.

    Raises:
        Missing: If a table, a row or a number does not exist, unless tables may be missing.
    """
    return _fill('report.md', papers=_judge(read_tables(folder), may_lack_tables), folder=folder, quick=quick)


def render_comparisons(folder: Path, may_lack_tables: bool = False) -> str:
    r"""Returns the comparisons that decide on each claim on accuracy."""
    return _fill('comparisons.md', papers=_judge(read_tables(folder), may_lack_tables))


def render_results(folder: Path, page: str) -> str:
    r"""Returns a page with the text between its markers written anew.

    Raises:
        Missing: If a table, a row or a number does not exist.
        ValueError: If the page does not have both markers, once each and in order.
    """
    start, end = MARKERS
    if page.count(start) != 1 or page.count(end) != 1 or page.index(start) > page.index(end):
        raise ValueError(f'page: lacks {start!r} before {end!r}; accepted: a text with each once')
    tables = read_tables(folder)
    text = _fill('results.md', papers=_judge(tables), gpu_ran=(folder / 'gpu.csv').is_file(), **tables)
    return f'{page.partition(start)[0]}{start}\n{text}{end}{page.partition(end)[2]}'


def read_tables(folder: Path) -> dict[str, Table]:
    r"""Returns the tables of all benchmarks by name."""
    return {name: Table(folder, name) for benchmark in BENCHMARKS.values() for name in benchmark.tables}


def _judge(tables: Mapping[str, Table], may_lack_tables: bool = False) -> list[Paper]:
    return [paper.judged(tables, may_lack_tables) for paper in PAPERS]


def _fill(template: str, **values: object) -> str:
    return (
        ENVIRONMENT.get_template(template).render(verdicts=rules.VERDICTS, by_chance=rules.by_chance, **values).strip() + '\n'
    )


def _anchor(heading: str) -> str:
    r"""The anchor that GitHub gives a heading."""
    return re.sub(r'[^\w-]', '', heading.lower().replace(' ', '-'))


def _in_all(verdict: str, papers: Iterable[Paper]) -> int:
    return sum(paper.count(verdict) for paper in papers)


ENVIRONMENT = Environment(
    loader=FileSystemLoader(Path(__file__).parent),
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    autoescape=False,
)
ENVIRONMENT.filters |= {'form': form, 'anchor': _anchor, 'in_all': _in_all}
