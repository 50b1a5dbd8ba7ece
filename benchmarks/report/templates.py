r"""Fills tables into Markdown files, which are Jinja templates. Tables are variables, as in
:obj:`{{ motifs.cell('paper', task='circle', model='GAT') }}`.
"""

from __future__ import annotations

import re
import statistics
import traceback
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import CodeType
from typing import Any

from jinja2 import Environment, StrictUndefined, Template, TemplateSyntaxError, UndefinedError, nodes

from benchmarks.registry import BENCHMARKS
from benchmarks.report import rules
from benchmarks.report.effects import compare
from benchmarks.report.tables import Missing, Table, each, form, growth_rates

__all__ = ['TEMPLATES', 'ReportError', 'Results']

TEMPLATES = Path(__file__).parent
TABLES = tuple(table for benchmark in BENCHMARKS.values() for table in benchmark.tables)


class ReportError(ValueError):
    r"""A reference of a template that cannot be filled in. The message names file, line, reference and reason."""

    def __init__(self, path: Path, line: int, reference: str, reason: str) -> None:
        super().__init__(f'{path.name}, line {line}: {reference}: {reason}')
        self.reason = reason


class Results:
    r"""A folder of tables, and what templates can name: its tables, the rules, and the macros of :obj:`words.md`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.names: dict[str, Any] = {name: getattr(rules, name) for name in rules.__all__}
        self.names |= {
            'abs': abs,
            'compare': compare,
            'each': each,
            'growth_rates': growth_rates,
            'median': statistics.median,
            'zip': zip,
        }
        self.names |= {name: Table(folder, name) for name in TABLES}
        self.words: Any = self._compile(TEMPLATES / 'words.md').module
        self.names['words'] = self.words

    def tables_in(self, source: str) -> list[str]:
        r"""Returns the names of the tables that a template refers to."""
        names = _names_in(source)
        return [name for name in TABLES if name in names]

    def fill(self, path: Path, source: str | None = None, line: int = 0, values: Mapping[str, object] | None = None) -> str:
        r"""Fills in a file, or a section of it that begins after some lines.

        Raises:
            ReportError: If a reference cannot be filled in, for example because a table, a row or a number does not exist.
        """
        try:
            return self._compile(path, source, line).render(values or {})[line:]
        except TemplateSyntaxError as error:
            number, reason = error.lineno, str(error)
        except (Missing, UndefinedError, TypeError, ValueError, LookupError, ArithmeticError) as error:
            frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename.endswith('.md')]
            path, number, reason = Path(frames[-1].filename), frames[-1].lineno or 0, str(error)
        reference = path.read_text().splitlines()[number - 1].strip()
        raise ReportError(path, number, reference, reason)

    def _compile(self, path: Path, source: str | None = None, line: int = 0) -> Template:
        source = path.read_text() if source is None else '\n' * line + source
        return Template.from_code(ENVIRONMENT, _code(source, str(path)), ENVIRONMENT.make_globals(self.names))


def _anchor(heading: str) -> str:
    r"""The anchor that GitHub gives a heading."""
    return re.sub(r'[^\w-]', '', heading.lower().replace(' ', '-'))


ENVIRONMENT = Environment(
    undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, extensions=['jinja2.ext.do'], autoescape=False
)
ENVIRONMENT.filters |= {
    'form': form,
    'negative': lambda gaps: [-gap for gap in gaps],
    'anchor': _anchor,
    'counted': lambda chapter, verdict: chapter.count(verdict),
}


@cache
def _code(source: str, filename: str) -> CodeType:
    return ENVIRONMENT.compile(source, filename=filename)


@cache
def _names_in(source: str) -> frozenset[str]:
    return frozenset(node.name for node in ENVIRONMENT.parse(source).find_all(nodes.Name))
