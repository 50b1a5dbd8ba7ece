"""What the page of masks says of dense-exponential features is in the table."""

from collections import Counter
from pathlib import Path

from csv_tables import stored_rows

ROOT = Path(__file__).parents[2]
PAGE = ' '.join((ROOT / 'docs' / 'masks.md').read_text(encoding='utf-8').split())


def test_figures() -> None:
    rows = stored_rows('candidates_softmax')
    verdicts = {
        number: Counter(row['verdict'] for row in rows if '(derf)' in row['method'] and row['features'] == number)
        for number in ('24', '56', '120', '248')
    }
    assert all(sum(counts.values()) == 12 for counts in verdicts.values())
    many = [verdicts[number] for number in ('56', '120', '248')]
    assert min(counts['better'] for counts in many) == 9
    assert {counts['worse'] for counts in many} == {1, 2}
    assert verdicts['24']['better'] == 4
    assert 'in at least nine of twelve settings' in PAGE
    assert 'It is farther in one or two' in PAGE
    errors = {
        (row['queries and keys'], row['features']): float(row['relative error'].split()[0])
        for row in rows
        if 'DERF' in row['method']
    }
    asymmetric = [errors[inputs, '48'] < errors[inputs, '56'] for inputs in {inputs for inputs, _ in errors}]
    assert (sum(asymmetric), len(asymmetric)) == (4, 12)
    assert 'in four of twelve settings, and less in eight' in PAGE
