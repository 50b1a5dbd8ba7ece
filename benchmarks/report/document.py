r"""The report and the page :obj:`docs/results.md`, from the Markdown files of this folder.

A file of claims has a section for each: a heading :obj:`## place in the paper: statement`, a line :obj:`Verdict:` with a rule
of :mod:`benchmarks.report.rules`, and sentences. A paragraph :obj:`Differs:` says what is not as in the paper, and a paragraph
:obj:`Why:` why the claim is not reproduced. A claim on accuracy appends its comparisons with the paper's effects to
:obj:`compared`.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from benchmarks.registry import BENCHMARKS, find_benchmark
from benchmarks.report import rules
from benchmarks.report.effects import Comparison
from benchmarks.report.templates import TEMPLATES, ReportError, Results
from benchmarks.runner import read_durations

__all__ = ['CHAPTERS', 'Chapter', 'Claim', 'read_chapter', 'render_report', 'render_results']

CHAPTERS = tuple(TEMPLATES / f'{name}.md' for name in ('general_theory', 'grf', 'mgformer', 'kmip', 'gains', 'package'))
VERDICTS = (rules.REPRODUCED, rules.TREND, rules.NOT_REPRODUCED, rules.UNDECIDED, rules.NOT_RUN)
MARKERS = ('<!-- results: begin -->', '<!-- results: end -->')
#: A line of a claim that may lack its tables.
MAY_BE_MISSING = 'If missing: not run here'
#: Words of columns that hold a paper's figures. The report shows such tables and links the unused.
THEIRS = ('paper', 'thesis', 'Table')


@dataclass(frozen=True)
class Claim:
    r"""A statement, its verdict, its text in Markdown, the names of the tables that decide, and the comparisons of a
    statement on accuracy.
    """

    heading: str
    verdict: str
    text: str
    tables: Sequence[str]
    compared: Sequence[Comparison] = ()

    @property
    def differs(self) -> str:
        r"""What is not as in the paper."""
        paragraph = re.search(r'^Differs: (.*)$', self.text, re.MULTILINE)
        return paragraph[1] if paragraph else ''


@dataclass(frozen=True)
class Chapter:
    r"""The claims of a paper with its title and link, or those of the package, which has no link."""

    title: str
    link: str
    claims: Sequence[Claim]

    def count(self, verdict: str) -> int:
        return [claim.verdict for claim in self.claims].count(verdict)


def render_report(folder: Path, quick: bool = False, may_lack_tables: bool = False) -> str:
    r"""Returns the report on a folder of tables and plots. Claims whose tables may be missing, and are, were not run.

    Raises:
        ReportError: If a reference cannot be filled in.
    """
    results = Results(folder)
    chapters = [read_chapter(path, results, may_lack_tables) for path in CHAPTERS]
    shown = {table for chapter in chapters for claim in chapter.claims for table in claim.tables}
    unused = sorted({path.stem for path in folder.glob('*.md')} - shown - {'REPORT'})
    values = {'chapters': chapters, 'verdicts': VERDICTS, 'quick': quick, 'unused': unused}
    values |= {'show': partial(_show, folder), 'minutes': read_durations(folder), 'hours': _hours_of_training(folder)}
    return results.fill(TEMPLATES / 'report.md', values=values).strip() + '\n'


def _hours_of_training(folder: Path) -> dict[str, float]:
    r"""Hours of a processor for each task of the benchmark :obj:`accuracy`."""
    hours: dict[str, float] = {}
    path = folder / 'accuracy_runs.csv'
    if path.is_file():
        with path.open(newline='') as file:
            for row in csv.DictReader(file):
                hours[row['task']] = hours.get(row['task'], 0.0) + float(row['seconds']) / 3600
    return hours


def render_results(folder: Path, page: str) -> str:
    r"""Returns a page with the text between its markers written anew.

    Raises:
        ReportError: If a reference cannot be filled in.
        ValueError: If the page does not have both markers, once each and in order.
    """
    start, end = MARKERS
    if page.count(start) != 1 or page.count(end) != 1 or page.index(start) > page.index(end):
        raise ValueError(f'page: lacks {start!r} before {end!r}; accepted: a text with each once')
    results = Results(folder)
    chapters = [read_chapter(path, results) for path in CHAPTERS]
    text = results.fill(TEMPLATES / 'results.md', values={'chapters': chapters, 'verdicts': VERDICTS}).strip()
    return f'{page.partition(start)[0]}{start}\n{text}\n{end}{page.partition(end)[2]}'


def read_chapter(path: Path, results: Results, may_lack_tables: bool = False) -> Chapter:
    r"""Returns the claims of a file, judged by the tables of a folder."""
    head, *sections = re.split(r'^(?=## )', path.read_text(), flags=re.MULTILINE)
    title, _, link = head.strip().partition('\n')
    line, claims = head.count('\n'), []
    for section in sections:
        claims.append(_read_claim(path, section, line, results, may_lack_tables or MAY_BE_MISSING in section))
        line += section.count('\n')
    return Chapter(title.removeprefix('# '), link.strip(), claims)


def _read_claim(path: Path, section: str, line: int, results: Results, may_lack_tables: bool) -> Claim:
    heading, _, body = section.replace(MAY_BE_MISSING, '').partition('\n')
    compared: list[Comparison] = []
    try:
        text = results.fill(path, body, line + 1, {'compared': compared})
    except ReportError as error:
        if not may_lack_tables:
            raise
        compared = []
        command = f'python -m benchmarks --full {find_benchmark(results.tables_in(body)[0])}'
        text = f'Verdict: {rules.NOT_RUN}\n\nThe results are missing: {error.reason}. Run `{command}`.'
    tables = results.tables_in(body)
    verdict, text = re.fullmatch(r'\s*(?:Verdict: (.*?)\n)?(.*)', text, re.DOTALL).groups('')  # type: ignore[union-attr]
    if verdict not in (*VERDICTS, rules.MEASURED, ''):
        raise ReportError(path, line + 1, heading, f'got the verdict {verdict!r}; accepted: {", ".join(VERDICTS)}')
    links = [f'[{name}]({name}.md)' for name in tables if (results.folder / f'{name}.md').is_file()]
    paragraphs = [' '.join([f'**{verdict.capitalize()}**' if verdict else '', *links]).strip()]
    for paragraph in filter(None, map(str.strip, re.split(r'\n\s*\n', text))):
        if not (paragraph.startswith('Why:') and verdict in (rules.REPRODUCED, rules.UNDECIDED)):
            paragraphs.append(paragraph if paragraph.startswith(('- ', '|')) else ' '.join(paragraph.split()))
    if verdict == rules.UNDECIDED:
        paragraphs.append(results.words.to_decide(compared).strip())
    if compared:
        paragraphs.append(results.words.power(compared).strip())
    return Claim(heading.removeprefix('## '), verdict or rules.MEASURED, '\n\n'.join(paragraphs), tables, compared)


def _show(folder: Path, name: str) -> str:
    r"""Title, settings and plots of a table, and the table itself if it holds figures of a paper."""
    path = folder / f'{name}.md'
    if not path.is_file():
        return ''
    head, _, rows = path.read_text().removeprefix('# ').partition('\n| ')
    names = {name, *(key for key, benchmark in BENCHMARKS.items() if benchmark.tables[0] == name)}
    plots = [plot for plot in sorted(folder.glob('*.png')) if plot.stem in names or plot.stem.startswith(f'{name}_')]
    images = ''.join(f'![{plot.stem}]({plot.name})\n\n' for plot in plots)
    holds_theirs = any(word in rows.partition('\n')[0] for word in THEIRS)
    return f'### {head}\n{images}' + (f'| {rows.strip()}' if holds_theirs else f'Table: [{name}.md]({name}.md).')
