r"""The report: statements of the papers, verdicts, tables and plots, from the files of a folder of results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from benchmarks.registry import BENCHMARKS, find_benchmark
from benchmarks.report.claims import MEASURED, NOT_REPRODUCED, NOT_RUN, REPRODUCED, RULES, TREND, Claim, Section
from benchmarks.report.general_theory import GENERAL_THEORY
from benchmarks.report.grf import GRF
from benchmarks.report.kmip import KMIP
from benchmarks.report.mgformer import MGFORMER
from benchmarks.report.package import PACKAGE

__all__ = ['SECTIONS', 'count_verdicts', 'render_report']

SECTIONS = (GENERAL_THEORY, GRF, MGFORMER, KMIP, PACKAGE)
#: Words of columns that hold a paper's figures; such tables are shown, others linked.
THEIRS = ('paper', 'thesis', 'Table')
HIDDEN = ('seeds',)
WHY = (
    'Behind each stands what differs from the paper, of which the notes of the tables say more, and behind what is not '
    'reproduced in full why it is not: "probably" is a guess.'
)


def render_report(folder: Path, quick: bool = False) -> str:
    r"""Returns the report on the tables and plots of a folder, in Markdown.

    Args:
        folder (Path): Where :func:`~benchmarks.harness.write_table` has written.
        quick (bool, optional): Whether by a smoke run, of which the report warns. (default: :obj:`False`)
    """
    lines = ['# Results', '', f'Written by `python -m benchmarks report` from the tables beside it. {RULES} {WHY}', '']
    lines += ['**A smoke run: its sizes are too small for its verdicts to mean anything.**', ''] if quick else []
    lines += ['| paper | ' + ' | '.join((REPRODUCED, TREND, NOT_REPRODUCED, NOT_RUN)) + ' |', '|' + ' --- |' * 5]
    for section in SECTIONS[:-1]:
        counts = count_verdicts([section], folder)
        cells = [str(counts[verdict]) for verdict in (REPRODUCED, TREND, NOT_REPRODUCED, NOT_RUN)]
        lines.append(f'| [{section.heading}](#{_anchor(section.heading)}) | {" | ".join(cells)} |')
    shown: set[str] = set()
    for section in SECTIONS:
        lines += ['', f'## {section.heading}', '']
        if section.link:
            lines += [f'<{section.link}>', '']
        lines += _claims(section, folder)
        tables = [name for name in dict.fromkeys(claim.table for claim in section.claims) if name and name not in shown]
        for name in tables:
            lines += _table(name, folder)
        shown |= set(tables)
    others = sorted({path.stem for path in folder.glob('*.csv') if path.with_suffix('.md').is_file()} - shown)
    if others:
        lines += ['', '## Other tables']
        for name in others:
            lines += _table(name, folder)
    return '\n'.join(lines) + '\n'


def count_verdicts(sections: Iterable[Section], folder: Path) -> Counter[str]:
    return Counter(claim.decide(folder).verdict for section in sections for claim in section.claims)


def _claims(section: Section, folder: Path) -> list[str]:
    measured = all(claim.decide(folder).verdict in (MEASURED, NOT_RUN) for claim in section.claims)
    heads = ('what', 'question', 'here', 'table') if measured else ('where', 'statement', 'verdict', 'here', 'why', 'table')
    lines = ['| ' + ' | '.join(heads) + ' |', '|' + ' --- |' * len(heads)]
    for claim in section.claims:
        found = claim.decide(folder)
        sentence = found.sentence if found.verdict != NOT_RUN else f'{found.sentence} {_command(claim)}'.strip()
        link = f'[{claim.table}]({claim.table}.md)' if (folder / f'{claim.table}.md').is_file() else claim.table
        cells = (
            [claim.where, claim.statement, sentence, link]
            if measured
            else [claim.where, claim.statement, f'**{found.verdict}**', sentence, _why(claim, found.verdict), link]
        )
        lines.append('| ' + ' | '.join(cell.replace('|', r'\|') for cell in cells) + ' |')
    return lines


def _why(claim: Claim, verdict: str) -> str:
    parts = (
        f'differs: {claim.differs}' if claim.differs and verdict in (REPRODUCED, TREND, NOT_REPRODUCED) else '',
        claim.reason if verdict in (TREND, NOT_REPRODUCED) else '',
    )
    return '; '.join(filter(None, parts))


def _command(claim: Claim) -> str:
    return f'`python -m benchmarks --full {find_benchmark(claim.table)}`' if claim.table else ''


def _table(name: str, folder: Path) -> list[str]:
    r"""Title, settings, plots, and the table itself where it holds figures of a paper."""
    path = folder / f'{name}.md'
    if not path.is_file():
        return []
    title, *lines = path.read_text().rstrip().split('\n')
    start = next(index for index, line in enumerate(lines) if line.startswith('| '))
    heads = _cells(lines[start])
    found = ['', f'### {title.removeprefix("# ")}', *lines[: start - 1]]
    for plot in _plots(name, folder):
        found += ['', f'![{plot.stem}]({plot.name})']
    if not any(word in head for head in heads for word in THEIRS):
        return [*found, '', f'Table: [{name}.md]({name}.md).']
    kept = [index for index, head in enumerate(heads) if head not in HIDDEN]
    rows = ['| ' + ' | '.join(_cells(line)[index] for index in kept) + ' |' for line in lines[start:]]
    return [*found, '', *rows]


def _plots(name: str, folder: Path) -> list[Path]:
    r"""The plots that have the name of a table, or for the first table of a benchmark the benchmark's."""
    names = {name, *(own for own, benchmark in BENCHMARKS.items() if benchmark.tables[0] == name)}
    return [path for path in sorted(folder.glob('*.png')) if path.stem in names or path.stem.startswith(f'{name}_')]


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip('|').split(' | ')]


def _anchor(heading: str) -> str:
    r"""The anchor that GitHub gives a heading."""
    return ''.join(c for c in heading.lower().replace(' ', '-') if c.isalnum() or c in '-_')
