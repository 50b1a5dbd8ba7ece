r"""Speed and memory of this package, beside named baselines in the same run, and what its masks are worth on the digits."""

from __future__ import annotations

import statistics

from benchmarks.report.claims import MEASURED, Claim, Finding, Section, by_chance
from benchmarks.report.grf import minus_favor
from benchmarks.report.tables import Estimate, Row, Table, span, times

__all__ = ['PACKAGE']

EDGES = 'GRF edges route'
GRAPHS = ('ring', 'random')
THEIRS = ('Transformer', 'Performer')
LARGE_GRAPHS = ('wn-squirrel', 'actor', 'pubmed')
#: What the names of attentions with a mask start with in the table of images.
MASKS = ('GRF', 'exact power series', 'Toeplitz', 'heat kernel', 'ad-hoc', 'learned features')
NOT_OURS = ('dense softmax (SDPA)', 'PerformerAttention', 'GATConv')


def _pair(found: list[float]) -> str:
    return f'{times(found[0])} (ring) and {times(found[1])} (random graph)'


def growth(table: Table, memory: str = 'kept') -> list[float]:
    r"""How much the time per node of a GRF layer grows from 10,000 to 1,000,000 nodes, relative to a CSR product, by graph."""
    row = {'nodes': 1_000_000, 'method': EDGES, 'memory': memory}
    return [table.number('growth from 1e4', {'graph': graph, **row}) for graph in GRAPHS]


def _own_growth(table: Table) -> list[float]:
    r"""How much the time per node of a GRF layer grows by itself, by graph."""
    rows = [{'graph': graph, 'method': EDGES, 'memory': 'kept'} for graph in GRAPHS]
    return [
        table.number('forward', {**row, 'nodes': 1_000_000}) / table.number('forward', {**row, 'nodes': 10_000}) for row in rows
    ]


def beside(table: Table, other: str, nodes: int, column: str = 'forward', method: str = EDGES) -> list[float]:
    r"""The time of a GRF layer, or of what is named, over that of another method, by graph."""
    return [
        table.number(column, {**row, 'method': method}) / table.number(column, {**row, 'method': other})
        for row in ({'graph': graph, 'nodes': nodes, 'memory': 'kept'} for graph in GRAPHS)
    ]


def _linear(table: Table) -> Finding:
    row = {'nodes': 1_000_000, 'method': EDGES}
    peaks = {
        memory: max(table.where({**row, 'memory': memory}).numbers('peak memory, bytes per node'))
        for memory in ('kept', 'default')
    }
    kept, default = (f'{peak * 1e6 / 2**30:.1f} GiB' for peak in peaks.values())
    return Finding(
        MEASURED,
        f'From 10,000 to 1,000,000 nodes the time per node of a GRF attention layer grows to {_pair(_own_growth(table))} times '
        f'what it was, as memory gets slower: {_pair(growth(table))} times as much as that of a CSR sparse product on the same '
        f"graph; with glibc's default allocator "
        f'{_pair(growth(table, "default"))} times. A training step at 1,000,000 nodes takes {kept} ({default} with the default '
        f'allocator).',
    )


def _against_layers(table: Table) -> Finding:
    prepare = [
        table.number('prepare', row) / table.number('forward', row)
        for row in ({'graph': graph, 'nodes': 100_000, 'method': EDGES, 'memory': 'kept'} for graph in GRAPHS)
    ]
    return Finding(
        MEASURED,
        f'Forward at 100,000 nodes a GRF layer takes {_pair(beside(table, "unmasked linear", 100_000))} times as long as '
        f'unmasked linear attention of this package, {_pair(beside(table, "PerformerAttention", 100_000))} times as long as '
        f'`PerformerAttention`, which has no mask and 44 random features where GRF has 16, and '
        f'{_pair(beside(table, "GATConv", 100_000))} times as long as `GATConv`, which sees neighbours alone. Walking and '
        f'pairing, once per graph, takes as long as {span(prepare)} forward passes.',
    )


def _asymmetric(table: Table) -> Finding:
    own = table.where({'method': 'AsymmetricGRFAttention'})
    sizes = own.numbers('nodes')
    grown = own.where({'nodes': int(max(sizes))}).numbers('growth')
    return Finding(
        MEASURED,
        f'It takes {span(own.numbers("forward / GATConv"))} times the time of `GATConv` with the same channels and as many '
        f'neighbours forward, and {span(own.numbers("training / GATConv"))} times in training, from {min(sizes):,.0f} to '
        f'{max(sizes):,.0f} nodes; its growth relative to a CSR product is {span(grown)}.',
    )


def saved_memory(table: Table, least: bool = False) -> dict[str, float]:
    r"""How many times the memory of a route plain autograd takes, in the same way, at the largest number of features or, if
    :obj:`least`, the smallest.
    """
    size = (min if least else max)(int(value) for value in table.distinct('m = d'))
    peaks = {
        name: table.number('peak bytes per node and head', {'m = d': size, 'method': name})
        for name in ('plain autograd', 'plain, along the edges', 'features', 'edges')
    }
    return {
        'features': peaks['plain autograd'] / peaks['features'],
        'edges': peaks['plain, along the edges'] / peaks['edges'],
    }


def _combine(table: Table) -> Finding:
    sizes, saved, least = sorted(map(int, table.distinct('m = d'))), saved_memory(table), saved_memory(table, least=True)
    return Finding(
        MEASURED,
        f'Its memory grows with m + d, not m d: at {sizes[-1]} features plain autograd takes {times(saved["features"])} times '
        f'the memory of the features route, and {times(saved["edges"])} times that of the edges route where it goes along the '
        f'edges; at {sizes[0]} features {times(least["features"])} and {times(least["edges"])} times.',
    )


def _hot_paths(table: Table) -> Finding:
    parts = [f'{row["what"]}: {times(float(row["plain / pyg_topomask"]))}' for row in table.rows]
    return Finding(
        MEASURED, f'Time of a plain vectorised version, left to autograd, over that of this package. {"; ".join(parts)}.'
    )


def _before_after(table: Table) -> Finding:
    parts = [f'{row["path"]}: {times(float(row["before / after"]))}' for row in table.rows]
    return Finding(MEASURED, f'Time before the passes over speed, over that of today. {"; ".join(parts)}.')


def _sampler(table: Table) -> Finding:
    column = 'speed / torch_sparse'
    found = {
        kind: [
            table.number(column, {'graph': graph, 'nodes': nodes, 'method': f'{kind}, Numba'})
            for graph in GRAPHS
            for nodes in (200_000, 1_000_000)
        ]
        for kind in ('walks', 'features')
    }
    walks = table.where({'method': 'walks, Numba'})
    small = walks.keep(lambda row: int(row['nodes']) < 200_000).numbers(column)
    return Finding(
        MEASURED,
        f'With Numba it makes {span(found["walks"])} times as many steps per second, with loads, as '
        f'`torch_sparse.random_walk`, which is compiled and returns no loads, at 200,000 and 1,000,000 nodes, and '
        f'{span(small)} times as many from fewer nodes; sorted and added up into features {span(found["features"])} times.',
    )


def faster_features(table: Table, method: str) -> list[float]:
    r"""How many times as fast as fast-graph-gp walks become features."""
    return table.where({'task': 'features', 'method': f'pyg_topomask, {method}'}).numbers('speed / baseline')


def _features(table: Table) -> Finding:
    series = table.where({'task': 'series', 'method': 'PowerSeriesMask'}).numbers('speed / baseline')
    return Finding(
        MEASURED,
        f'From the graph to features it is {span(faster_features(table, "numba"))} times as fast as fast-graph-gp with Numba, '
        f'{span(faster_features(table, "torch"))} times without. Exact power series are {span(series)} times as fast as with '
        f'scipy.sparse.',
    )


def faster_heat(table: Table) -> list[float]:
    r"""How many times as fast as SciPy heat kernels are."""
    return [1 / value for value in table.numbers('time / scipy')]


def _heat(table: Table) -> Finding:
    return Finding(
        MEASURED,
        f'Asked for 1e-8, and off by up to {max(table.numbers("error")):.0e}, they are {span(faster_heat(table))} times as '
        f"fast as SciPy's `expm_multiply`, which works to 1e-16.",
    )


def _search(table: Table) -> Finding:
    size = int(max(table.keep(lambda row: row['method'].startswith('KeOps')).numbers('nodes per graph')))
    row = {'graphs': 1, 'nodes per graph': size}
    keops, faiss = (table.number('KeOps argKmin alone / it', {**row, 'method': method}) for method in ('auto', 'faiss'))
    alone = 1 / table.number('faiss alone / it', {**row, 'method': 'faiss'})
    return Finding(
        MEASURED,
        f"At {size:,} nodes `auto` is {times(keops)} times as fast as KeOps' `argKmin`, the faiss backend "
        f'{times(faiss)} times, and takes {alone:.2f} times the time of faiss alone.',
    )


def _batches(table: Table) -> Finding:
    rows = table.where({'method': 'k-MIP, auto'}).rows
    parts = [
        f'{int(row["graphs"]):,} graphs of {int(row["nodes each"]):,} nodes take '
        f'{times(float(row["inference time / SDPA"]))} times the time of full attention in inference and '
        f'{times(float(row["training time / SDPA"]))} times in training'
        for row in (rows[0], rows[-1])
    ]
    return Finding(MEASURED, f'{parts[0]}; {parts[1]}.')


def _digits(table: Table) -> Finding:
    def show(name: str) -> str:
        row = table.where({'gt.layer_type': name}).rows[0]
        value = Estimate.parse(row['test accuracy'])
        return f'{name} {value.mean:.3f} ± {value.error:.3f} ({row["verdict"]})'

    names = table.distinct('gt.layer_type')
    seeds = len(table.column('seeds')[0].split())
    return Finding(
        MEASURED,
        f'{", ".join(map(show, names))}, {seeds} seeds. A message-passing network on 8x8 images with coordinates as features '
        f'needs no global attention: the set shows that training works, not that the mask helps.',
    )


def _graphgps(table: Table) -> Finding:
    own, parts = table.keep(lambda row: row['attention'] not in THEIRS), []
    for other in THEIRS:
        found = own.numbers(f'time, {other} = 1')
        parts.append(f'{times(statistics.median(found))} times as long as with {other} ({span(found)})')
    return Finding(
        MEASURED,
        f'On {len(table.distinct("data set"))} data sets an epoch with an attention of this package takes in the median '
        f'{" and ".join(parts)}; Transformer drops coefficients on some of them, which takes it longer, and Performer has '
        f'heads of 64 channels, whatever the size of the model, and so mostly several times the channels.',
    )


def _large_graphs(table: Table) -> Finding:
    own = table.keep(lambda row: row['attention'] not in THEIRS and row['data set'] in LARGE_GRAPHS)
    columns = {f'time, {other} = 1': limit for other, limit in (('Transformer', 1.0), ('Performer', 1.5))}

    def above(row: Row) -> bool:
        return any(float(row[column]) > limit for column, limit in columns.items() if row[column] not in ('', 'nan'))

    slow = [row for row in own.rows if above(row)]
    names = ', '.join(
        f'{row["attention"]} on {row["data set"]} ({" and ".join(times(float(row[column])) for column in columns)} times)'
        for row in slow
    )
    return Finding(
        MEASURED,
        f'On {", ".join(LARGE_GRAPHS)} an epoch with an attention of this package takes no longer than with Transformer, where '
        f'that fits in memory, and at most 1.5 times as long as with Performer, in {len(own.rows) - len(slow)} of '
        f'{len(own.rows)} cases{f"; not so {names}" if slow else ""}.',
    )


def _images(table: Table) -> Finding:
    rows = table.keep(lambda row: row['attention'].startswith(MASKS)).rows
    gaps = [
        minus_favor(table, row) if 'FAVOR+' in row['attention'] else row.gap('minus linear, ReLU, paired by seed')
        for row in rows
    ]
    verdicts = [gap.verdict for gap in gaps]
    counts = [f'{verdicts.count(verdict)} {verdict}' for verdict in ('better', 'worse', 'not distinguishable')]
    chance = sum(by_chance(len(row['seeds'].split())) for row in rows)
    return Finding(
        MEASURED,
        f'Of {len(rows)} comparisons of masked linear attention with unmasked one of the same features on small images '
        f'{counts[0]}, {counts[1]} and {counts[2]}; of equal models some {chance:.0f} would differ by chance.',
    )


def _scale(table: Table) -> Finding:
    own = table.keep(lambda row: row['attention'] not in NOT_OURS)
    million = own.keep(lambda row: row['GiB'] not in ('', 'nan', 'inf'))
    trained, forward = (million.where({'step': step}) for step in ('training', 'forward'))
    return Finding(
        MEASURED,
        f'{len(trained.rows)} of {len(own.where({"step": "training"}).rows)} attentions were trained on 1,000,000 nodes, in '
        f'{span(trained.numbers("GiB"))} GiB and {span(trained.numbers("seconds"))} seconds of a core for the graph, what '
        f'masks prepare and one step; a forward pass alone takes {span(forward.numbers("GiB"))} GiB and '
        f'{span(forward.numbers("seconds"))} seconds. The others end at fewer by time or memory.',
    )


def _recommend(table: Table) -> Finding:
    row = {'model': 'MGFormer, random graph'}
    return Finding(
        MEASURED,
        f'Training on a random bipartite graph of {table.number("nodes", row):,.0f} nodes takes '
        f'{table.number("peak GB", row):.1f} GB, with loading, encodings and optimizer.',
    )


PACKAGE = Section(
    'Speed and memory of this package',
    '',
    [
        Claim('GRF attention', 'Time per node beside a sparse product', 'scaling', _linear, 'Linear'),
        Claim('GRF attention', 'Time beside layers of PyG', 'scaling', _against_layers, 'Against PyG'),
        Claim('Asymmetric GRF attention', 'Time beside GATConv', 'asymmetric', _asymmetric),
        Claim('Combine step', 'Memory beside plain autograd', 'memory', _combine),
        Claim('Hot paths', 'Time beside plain versions', 'hot_paths', _hot_paths),
        Claim('Hot paths', 'Time beside an earlier commit', 'before_after', _before_after),
        Claim('Walk sampler', 'Speed beside torch_sparse', 'sampler', _sampler),
        Claim('Graph random features', 'Speed beside fast-graph-gp and SciPy', 'grf_features', _features),
        Claim('Heat kernels', 'Speed beside expm_multiply', 'heat', _heat),
        Claim('Top-k search', 'Speed beside KeOps and faiss', 'topk_search', _search),
        Claim('k-MIP attention', 'Time in batches of graphs', 'kmip_batches', _batches, 'k-MIP attention in batches'),
        Claim('All attentions', 'Training on a million nodes', 'scale', _scale, 'A million nodes'),
        Claim('MGFormer', 'Memory of training on a large graph', 'recommend_speed', _recommend, 'MGFormer on a large graph'),
        Claim('GraphGPS', 'Seconds per epoch beside its own attentions', 'graphgps', _graphgps, 'In GraphGPS'),
        Claim(
            'GraphGPS, graphs above 5,000 nodes', 'Are they below Transformer, and near Performer?', 'graphgps', _large_graphs
        ),
        Claim('Masks on images', 'Accuracy beside unmasked linear attention', 'images', _images, 'Masks on images'),
        Claim('Digits', "What the mask is worth in the README's model", 'digits', _digits, 'Digits'),
    ],
)
