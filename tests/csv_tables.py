"""Tables in CSV that runs and benchmarks have written."""

import csv
from pathlib import Path

RESULTS = Path(__file__).parents[1] / 'benchmarks' / 'results'


def rows_of(path: Path) -> list[dict[str, str]]:
    with open(path, newline='', encoding='utf-8') as file:
        return list(csv.DictReader(file))


def stored_rows(table: str) -> list[dict[str, str]]:
    """The rows of a table of the benchmarks."""
    return rows_of(RESULTS / f'{table}.csv')


def without_seconds(path: Path) -> list[dict[str, str]]:
    """The metrics of a run, but the time that each epoch took."""
    return [{key: value for key, value in row.items() if key != 'seconds'} for row in rows_of(path)]
