"""The claims of the report, and tables made up for them."""

import csv
from pathlib import Path

from benchmarks.report.document import SECTIONS

CLAIMS = [claim for section in SECTIONS for claim in section.claims]
BETTER, WORSE, UNCLEAR = '+0.200 ± 0.010', '-0.200 ± 0.010', '+0.010 ± 0.010'


def write(folder: Path, name: str, rows: list[dict[str, object]]) -> None:
    folder.mkdir(exist_ok=True)
    with (folder / f'{name}.csv').open('w', newline='') as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def table(columns: str, *rows: tuple[object, ...]) -> list[dict[str, object]]:
    return [dict(zip(columns.split('|'), row, strict=True)) for row in rows]
