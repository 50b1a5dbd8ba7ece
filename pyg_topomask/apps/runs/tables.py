r"""Tables and pictures in files, which are whole at any moment, and tables in Markdown."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pyg_topomask.utils.files import write_atomically

#: Cells by the name of the column.
TableRow = dict[str, 'int | float | str | None']


def markdown_table(rows: Sequence[TableRow]) -> str:
    r"""Returns rows with the same columns as a table in Markdown."""
    columns = list(rows[0])
    cells = [columns, *([_cell(row[column]) for column in columns] for row in rows)]
    widths = [max(len(line[place]) for line in cells) for place in range(len(columns))]
    lines = ['| ' + ' | '.join(f'{cell:>{width}}' for cell, width in zip(line, widths, strict=True)) + ' |' for line in cells]
    return '\n'.join([lines[0], '|' + '|'.join('-' * (width + 1) + ':' for width in widths) + '|', *lines[1:]])


def _cell(value: float | str | None) -> str:
    if value is None:
        return ''
    return f'{value:.4g}' if isinstance(value, float) else f'{value}'


def write_csv(path: Path, rows: Iterable[Mapping[str, Any]], columns: Sequence[str] | None = None) -> None:
    r"""Writes rows as a CSV file. Its columns, which rows may lack, are by default those of the first row."""
    buffer = io.StringIO(newline='')
    writer = None
    for row in rows:
        if writer is None:
            writer = csv.DictWriter(buffer, list(row) if columns is None else columns, lineterminator='\n')
            writer.writeheader()
        writer.writerow(row)
    write_atomically(path, buffer.getvalue().encode())


def save_figure(path: Path, figure: Any) -> None:
    r"""Writes a figure of Matplotlib as a PNG file."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format='png', dpi=120)
    write_atomically(path, buffer.getvalue())
