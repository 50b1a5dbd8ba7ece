"""Tables made up for the report, and what its claims make of them."""

import csv
from pathlib import Path

from benchmarks.report.claims import Claim
from benchmarks.report.document import PAPERS, read_tables

BETTER, WORSE, UNCLEAR = '+0.200 ± 0.010', '-0.200 ± 0.010', '+0.010 ± 0.010'
SHOWN, UNSEEN = {WORSE: 'worse', BETTER: 'better'}, 'not distinguishable'


def write(folder: Path, name: str, rows: list[dict[str, object]]) -> None:
    folder.mkdir(exist_ok=True)
    with (folder / f'{name}.csv').open('w', newline='') as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def table(columns: str, *rows: tuple[object, ...]) -> list[dict[str, object]]:
    return [dict(zip(columns.split('|'), row, strict=True)) for row in rows]


def claims(folder: Path, name: str = '') -> list[Claim]:
    """The claims that a table decides, or all, in a folder that may lack tables."""
    tables = read_tables(folder)
    all_claims = [claim for paper in PAPERS for claim in paper.claims]
    return [claim.judged(tables, may_lack_tables=True) for claim in all_claims if not name or name in claim.tables]


def decide(folder: Path, place: str, name: str, statement: str = '') -> tuple[str, str]:
    """The verdict and our figure of the only claim on a place in a paper that a table decides."""
    (claim,) = (claim for claim in claims(folder, name) if claim.place == place and statement in claim.statement)
    return claim.finding.verdict, claim.finding.ours
