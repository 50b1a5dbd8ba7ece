"""The rows of targets, from measures and from tables."""

from pathlib import Path

from benchmarks.registry import BENCHMARKS
from benchmarks.targets import MEASURES, TARGETS, Target, row

KEPT = {
    'old: steps, GRF': {'GRF': 8.0, 'GRF, peak': 300.0},
    'new: steps, GRF': {'GRF': 2.0, 'GRF, peak': 400.0},
    'new: steps, Hop': {'Hop': 4.0, 'Hop, peak': 100.0},
    'other: steps, GRF': {'GRF': 0.0, 'GRF, peak': 0.0},
}


def cells(target: Target, folder: Path) -> tuple[object, ...]:
    found = row(target, KEPT, 'old', 'new', folder)
    return tuple(found[name] for name in ('target', 'before', 'now', 'met'))


def test_measures(tmp_path: Path) -> None:
    target = Target('steps', 'steps', '', {'GRF': 2, 'Hop': 3})
    assert cells(target, tmp_path) == ('2 (GRF), 3 (Hop)', '8.00', '2.00, 4.00', 'no: 1 of 2')
    assert cells(Target('steps', 'steps', '', {'': 4}), tmp_path)[-1] == 'yes'


def test_bounds_of_before_over_now(tmp_path: Path) -> None:
    assert cells(Target('steps', 'steps', 'GRF', {'': 4}, over=True), tmp_path) == ('4 x', '8.00', '2.00 (4.00 x)', 'yes')
    assert cells(Target('bytes', 'steps', 'peak', {'': 1}, over=True), tmp_path) == (
        '1 x',
        '300',
        '400, 100 (0.75 x)',
        'no: 0 of 1',
    )


def test_tables(tmp_path: Path) -> None:
    target = Target('nodes', 'nodes', 'ratio', {'a': 1}, floor='at the rate: {floor}')
    assert cells(target, tmp_path) == ('1', '-', '-', '-')
    (tmp_path / 'nodes.csv').write_text('graph,mask,ratio,floor\na,Hop,1.5,0.5\nb,Hop,9,9\na,GRF,0.5,0.25\na,Tree,-,-\n')
    assert cells(target, tmp_path) == ('1', '-', '1.50, 0.50', 'no: 1 of 2')
    assert row(target, KEPT, 'old', 'new', tmp_path)['floor'] == 'at the rate: 0.50, 0.25'


def test_targets_name_measures_or_tables() -> None:
    tables = {table for benchmark in BENCHMARKS.values() for table in benchmark.tables}
    for target in TARGETS:
        assert target.source in tables or any(name.startswith(target.source) for name in MEASURES), target.what
