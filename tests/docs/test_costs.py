"""The table "What does it cost?", computed again from the tables of results that it names."""

import re
from pathlib import Path

import pytest
from csv_tables import stored_rows

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / 'benchmarks' / 'results'
LAYERS = {
    '`Adjacency`, `SinDegree`, `GRF`, `PowerSeries` of order 2': ('Adjacency', 'SinDegree', 'GRF', 'PowerSeries, order 2'),
    '`Hop` with 2 hops': ('Hop, 2 hops', 'Hop, 2 hops, auto'),
    '`RWGNK`': ('RWGNK',),
    '`PowerSeries` of order 4': ('PowerSeries, order 4',),
    '`HeatKernel` with tolerance 1e-3': ('HeatKernel, tolerance 1e-3',),
    '`Hop` with 4 or 8 hops': ('Hop, 4 hops, auto', 'Hop, 8 hops, auto'),
    '`Toeplitz`, on grids': ('Toeplitz, window 8, auto', 'Toeplitz, window 2, zero beyond, auto'),
    '`Tree`, on trees': ('Tree, exp, auto', 'Tree, distance up to 4, auto', 'Tree, distance up to 16, auto'),
    '`KMIP`': ('KMIP',),
}


def measured() -> list[tuple[str, int, float, float]]:
    """The layer, the nodes of a graph, and the ratios on used and new graphs of each measurement."""
    rows = []
    for row in stored_rows('layers'):
        words = re.search(r'graphs of (\d+) nodes', row['graph'])
        if row['new graph / GATConv']:
            nodes = int(words[1]) if words else 10_000
            rows.append((row['layer'], nodes, float(row['prepared / GATConv']), float(row['new graph / GATConv'])))
    for row in stored_rows('distance_batches'):
        ratios = float(row['graph used before, / GATConv']), float(row['new graph, / GATConv'])
        rows.append((row['layer'], int(row['nodes of each']), *ratios))
    return rows


def span(ratios: list[float]) -> str:
    least, most = (f'{ratio:.1f}' if ratio < 10 else f'{ratio:.0f}' for ratio in (min(ratios), max(ratios)))
    return least if least == most else f'{least} to {most}'


@pytest.mark.parametrize('attention', LAYERS)
def test_costs(attention: str) -> None:
    page = (ROOT / 'docs' / 'which_mask.md').read_text(encoding='utf-8')
    (line,) = [line for line in page.splitlines() if line.startswith(f'| {attention} |')]
    cells = []
    for least, most in ((0, 100), (101, 400), (401, 10_000)):
        rows = [row for row in measured() if row[0] in LAYERS[attention] and least <= row[1] <= most]
        used, new = [row[2] for row in rows], [row[3] for row in rows]
        if most == 10_000:
            cells.append(f'up to {max(used):.1f} ({max(new):.1f})' if rows else '-')
        else:
            cells.append(f'{span(used)} ({span(new)})')
    assert line == f'| {attention} | {" | ".join(cells)} |'


def test_costs_in_the_readme() -> None:
    text = ' '.join((ROOT / 'README.md').read_text(encoding='utf-8').split())
    sentence = re.search(
        r'`GRF`, `Hop` with 2 hops and `PowerSeries` of order 2 take at most (\S+) times as long as `GATConv`. '
        r'At order 4, `PowerSeries` takes up to (\S+) times as long, '
        r'`HeatKernel` with tolerance 1e-3 up to (\S+), and `Tree` up to (\S+) ',
        text,
    )
    kinds = (
        ('GRF', 'PowerSeries, order 2', *LAYERS['`Hop` with 2 hops']),
        ('PowerSeries, order 4',),
        LAYERS['`HeatKernel` with tolerance 1e-3'],
        LAYERS['`Tree`, on trees'],
    )
    short, *long = (max(used for layer, _, used, _ in measured() if layer in layers) for layers in kinds)
    assert sentence is not None
    assert sentence.groups() == (f'{short:.1f}', *(f'{ratio:.0f}' for ratio in long))


def test_whole_runs() -> None:
    rows = {(row['data'], row['attention']): row for row in stored_rows('runs')}

    def over(kind: str) -> str:
        ratios = [
            float(rows[data, name]['plain loop, s']) / float(rows[data, f'GPSConv({kind})']['plain loop, s'])
            for data in ('digits', 'ENZYMES')
            for name in ('GRF', 'Hop')
        ]
        return span(ratios)

    runner = span([float(row['runner / plain loop']) for row in rows.values() if row['runner / plain loop']])
    text = ' '.join((ROOT / 'docs' / 'which_mask.md').read_text(encoding='utf-8').split())
    assert f"takes {over('multihead')} times as long as with PyG's `GPSConv(multihead)`" in text
    assert f'{over("performer")} times as long as with `GPSConv(performer)`' in text
    assert f'Our runner takes {runner} times as long as this loop' in text


def test_costs_of_whole_runs() -> None:
    text = ' '.join((ROOT / 'docs' / 'which_mask.md').read_text(encoding='utf-8').split())
    masks = 'GRF', 'Hop', 'PowerSeries', 'HeatKernel', 'RWGNK'
    seconds = {(row['data'], row['attention']): float(row['epoch, s'] or row['plain loop, s']) for row in stored_rows('runs')}
    digits, large = (
        {name: seconds[data, name] for name in (*masks, 'GPSConv(multihead)', 'GPSConv(performer)') if (data, name) in seconds}
        for data in ('digits', 'one graph')
    )
    assert (
        f'an epoch of digits takes {span([digits[name] for name in masks])} s with `GRF`, `Hop`, `PowerSeries`, `HeatKernel` '
        f'or `RWGNK`, {digits["GPSConv(multihead)"]:.1f} s with `GPSConv(multihead)` of PyG, and '
        f'{digits["GPSConv(performer)"]:.1f} s with `GPSConv(performer)`. On one graph of 100,000 nodes, it takes '
        f'{large["GRF"]:.0f} s with `GRF`, {large["Hop"]:.0f} s with `Hop`, {large["PowerSeries"]:.0f} s with `PowerSeries`, '
        f'{large["HeatKernel"]:.0f} s with `HeatKernel`, and {large["GPSConv(performer)"]:.0f} s with `GPSConv(performer)`.'
    ) in text
