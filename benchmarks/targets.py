r"""The targets of speed and memory, from single transforms to whole runs: what was wanted, what was before, and what is now."""

from __future__ import annotations

import csv
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from unittest import mock

import torch
from torch import Tensor
from torch.nn import Module, ModuleList
from torch_geometric.data import Batch, Data
from torch_geometric.nn import GATConv, GPSConv, SAGEConv
from torch_geometric.transforms import AddLaplacianEigenvectorPE, AddRandomWalkPE, BaseTransform

from benchmarks import locality, runs
from benchmarks.before_after import ROOT, unpack
from benchmarks.digits import code_version
from benchmarks.graphs import random_graph
from benchmarks.harness import interleaved_medians, kept_runs, peak_memory, read_runs, write_runs, write_table
from benchmarks.steps import CHANNELS, DEGREE, HEADS, step
from pyg_topomask import Graph
from pyg_topomask.masks import HopMask
from pyg_topomask.nn import KMIPAttention, MaskedLinearAttention, TopoGPSConv, kmip_attention
from pyg_topomask.ops import topk_inner_product
from pyg_topomask.transforms import AddGraphRandomFeatures, AddRandomWalkKernel, AddSVDEncoding

__all__ = ['MEASURES', 'TARGETS', 'Target', 'row', 'run']

Figures = dict[str, float]

#: The side of the road network of a million nodes.
SIDE = 1000
FIRST_STEPS = ('GRF', 'PowerSeries, order 4', 'HeatKernel, tolerance 1e-3')
#: Transforms, those of PyG that they are compared with, and numbers of graphs by their nodes.
TRANSFORMS: dict[str, tuple[Callable[[], BaseTransform], Callable[[], BaseTransform]]] = {
    'AddGraphRandomFeatures': (AddGraphRandomFeatures, lambda: AddRandomWalkPE(8)),
    'AddRandomWalkKernel': (AddRandomWalkKernel, lambda: AddRandomWalkPE(8)),
    'AddSVDEncoding(8)': (lambda: AddSVDEncoding(8), lambda: AddLaplacianEigenvectorPE(4)),
}
LISTS = {23: 256, 64: 128, 400: 16}
#: Graphs of a batch by their nodes, and layers of the model.
GPS, LAYERS = {64: 32, 150: 32}, 3


def _transforms_of_digits(quick: bool) -> Figures:
    stages = runs.train(['optim.max_epoch', '2', 'topomask.progress', 'False'])
    return {'us a graph': stages['transforms, s'] / 1797 * 1e6, 'peak, MiB': stages['peak, MiB']}


def _transform(name: str, quick: bool) -> Figures:
    ours, theirs = (make() for make in TRANSFORMS[name])
    figures = {}
    for nodes, number in LISTS.items():
        graphs = [_random(nodes) for _ in range(number // 8 if quick else number)]
        calls = {'ours': partial(_transformed, ours, graphs), 'theirs': partial(_transformed, theirs, graphs)}
        seconds = interleaved_medians(calls, 1 if quick else 7, time.process_time)
        figures[f'{nodes} nodes'] = seconds['ours'] / seconds['theirs']
    return figures


def _random(nodes: int) -> Data:
    return Data(edge_index=random_graph(nodes, DEGREE), num_nodes=nodes)


def _transformed(transform: BaseTransform, graphs: list[Data]) -> None:
    if hasattr(transform, 'forward_many'):
        transform(graphs)
    else:
        for data in graphs:  # transforms leave what they are given as it is
            transform(data)


def _kmip(quick: bool, searched: bool = True) -> Figures:
    r"""Measures a model with k-MIP attention, or with random keys in place of those that it searches for."""
    figures = {}
    for nodes, number in GPS.items():
        torch.manual_seed(0)
        batch = Batch.from_data_list([_random(nodes) for _ in range(number // 8 if quick else number)])
        x, graph = torch.randn(batch.num_nodes, CHANNELS, requires_grad=True), Graph.from_data(batch)
        ours = [TopoGPSConv(CHANNELS, _conv(), attn=KMIPAttention(CHANNELS, HEADS, k=10)) for _ in range(LAYERS)]
        theirs = [GPSConv(CHANNELS, _conv(), HEADS, attn_type='multihead') for _ in range(LAYERS)]
        calls: dict[str, Callable[[], object]] = {
            'ours': partial(_stacked, ours, x, batch.edge_index, graph=graph),
            'theirs': partial(_stacked, theirs, x, batch.edge_index, batch=batch.batch),
        }
        q, k = torch.randn(2, batch.num_nodes, HEADS, CHANNELS // HEADS)
        found = mock.Mock(return_value=topk_inner_product(q, k, 10, batch.ptr))
        with nullcontext() if searched else mock.patch.object(kmip_attention, 'topk_inner_product', found):
            seconds = interleaved_medians(calls, 1 if quick else 25, time.process_time)
        figures[f'{nodes} nodes'] = seconds['ours'] / seconds['theirs']
    return figures


def _conv() -> Module:
    return SAGEConv(CHANNELS, CHANNELS)


def _stacked(layers: Iterable[Module], x: Tensor, edge_index: Tensor, **keywords: object) -> None:
    for layer in layers:
        x = layer(x, edge_index, **keywords)
    x.sum().backward()


def _first_step(name: str, quick: bool) -> Figures:
    r"""Measures the first step of a layer on a graph, with its preparation. The machine code was called before."""
    side = SIDE // (16 if quick else 1)
    edges, size = locality.roads(side), side**2
    x, conv = torch.randn(size, CHANNELS, requires_grad=True), GATConv(CHANNELS, CHANNELS // HEADS, HEADS)
    layer = MaskedLinearAttention(CHANNELS, HEADS, locality.MASKS[name]())
    few = 300**2 if side > 300 else 20**2  # nodes are numbered anew on large graphs alone
    step(layer, torch.randn(few, CHANNELS), graph=Graph(locality.roads(round(few**0.5)), few))
    theirs = interleaved_medians({'GATConv': partial(step, conv, x, edges)}, 2, time.process_time)['GATConv']
    ours = 0.0

    def first() -> None:
        nonlocal ours
        start = time.process_time()
        step(layer, x, graph=Graph(edges, size))
        ours = time.process_time() - start

    peak = peak_memory(first)
    return {name: ours / theirs, f'{name}, peak, MiB': peak / 2**20}


def _preparations(quick: bool) -> Figures:
    layers = ModuleList(MaskedLinearAttention(CHANNELS, HEADS, HopMask(HEADS, 2)) for _ in range(2))
    data, calls = _random(2_000), 0
    x, prepare = torch.randn(2_000, CHANNELS), HopMask.prepare

    def counted(*arguments: object, **keywords: object) -> object:
        nonlocal calls
        calls += 1
        return prepare(*arguments, **keywords)  # type: ignore[arg-type]

    with mock.patch.object(HopMask, 'prepare', counted):
        for _ in range(5):
            _stacked(layers, x, data.edge_index)
    return {'': calls}


#: What measures figures, each in a process of its own.
MEASURES: dict[str, Callable[[bool], Figures]] = {
    'transforms of digits': _transforms_of_digits,
    **{name: partial(_transform, name) for name in TRANSFORMS},
    'preparations': _preparations,
    'KMIP': _kmip,
    'attention alone': partial(_kmip, searched=False),
    'Lightning alone': lambda quick: {'ENZYMES, None': runs.lightning_alone(1 if quick else 15)},
    **{f'first step, {name}': partial(_first_step, name) for name in FIRST_STEPS},
}


@dataclass(frozen=True)
class Target:
    r"""What shall be reached, by figures of some measures or of a column of another table.

    Args:
        what (str): What is measured.
        source (str): How the names of the measures begin, or the name of the table.
        figures (str): What the names of the figures contain, or the column.
        wanted (dict): Bounds by what the names of figures contain.
        first (str): The figures when the target was set. (default: :obj:`"-"`)
        over (bool): Whether a bound is that of the earlier figure over this one, from below. (default: :obj:`False`)
        floor (str): What arithmetic or a library allows, with the name of a measure, or of a column of the table, if there is
            one. (default: :obj:`""`)
    """

    what: str
    source: str
    figures: str
    wanted: Mapping[str, float]
    first: str = '-'
    over: bool = False
    floor: str = ''


_COPIES = 'bytes of the products at the copy rate: {floor / GATConv}'
# fmt: off
TARGETS = (
    Target('transforms of digits, microseconds a graph', 'transforms of digits', 'us', {'': 15}, '5,600 under a trainer', True,
           'PyG divides and joins graphs in 45 microseconds each'),
    Target('AddGraphRandomFeatures over AddRandomWalkPE(8)', 'AddGraphRandomFeatures', '', {'': 0.5}, '4, 6, 0.1'),
    Target('AddRandomWalkKernel over AddRandomWalkPE(8)', 'AddRandomWalkKernel', '', {'': 0.5}),
    Target('AddSVDEncoding(8) over AddLaplacianEigenvectorPE(4)', 'AddSVDEncoding', '', {'': 0.5}, '1, 1.2, 3',
           floor='400 nodes: 0.7 to make the matrix tridiagonal by LAPACK, or for ARPACK, which may miss repeated values'),
    Target('a step on new batches over prepared ones, three layers', 'shuffled', 'model, new / prepared', {'': 1.05},
           'up to 1.25'),
    Target('KMIP over GPSConv(multihead), three layers', 'KMIP', '', {'64 nodes': 1.0, '150 nodes': 0.8}, '1.5, 1.2',
           floor='with random keys in place of the search: {attention alone}'),
    Target('roads of 200,000 nodes, shuffled over in order', 'locality', 'shuffled / in order', {'roads': 1.1}, '1.6 to 2.6',
           floor='rows and gradients moved to other places and back: {moved / in order}'),
    Target('roads of 200,000 nodes, over GATConv', 'locality', 'in order / GATConv',
           {'roads, Hop, 8 hops': 1.5, 'roads, PowerSeries': 2.5, 'roads, HeatKernel': 3.5}, '2.5, 4.3, 6.7', floor=_COPIES),
    Target('random graph of 200,000 nodes, over GATConv', 'locality', 'in order / GATConv',
           {'random, Hop, 2 hops': 1.3, 'random, PowerSeries': 3, 'random, HeatKernel': 6}, '1.9, 4.5, 15', floor=_COPIES),
    Target('first step on roads of a million nodes, with preparation, over a step of GATConv', 'first step', '',
           {'GRF': 1.5, 'HeatKernel': 10, 'PowerSeries': 5}, '2.6, 50, 14'),
    Target('runner over plain loop of PyG', 'runs', 'runner / plain loop', {'': 1.1},
           floor='ENZYMES, None: {Lightning alone}, which is Lightning alone'),
    Target('command to first batch of digits over imports alone', 'runs_start', 'over imports alone', {'python': 1.25}, '2.7',
           floor='1.06: import scikit-learn, and load one kernel of Numba'),
    Target('preparations of two layers in five steps without graph=', 'preparations', '', {'': 1}, '10'),
    Target('peak memory of a run of digits, MiB', 'transforms of digits', 'peak', {'': 1}, over=True),
    Target('peak memory of the first step on a million nodes, MiB', 'first step', 'peak', {'': 1}, over=True),
)
# fmt: on


def run(quick: bool, folder: Path) -> None:
    r"""Measures what is missing in the file of this benchmark, for this code and for an earlier commit, and writes the table
    after each of them.
    """
    commit, path, now = os.environ.get('PYG_TOPOMASK_BEFORE', ''), kept_runs(folder, 'targets', quick), code_version()
    kept = read_runs('targets', path)
    with tempfile.TemporaryDirectory() as earlier:
        if commit:
            unpack(commit, Path(earlier))
        for version, tree in (*([(commit, earlier)] if commit else []), (now, str(ROOT))):
            for name in MEASURES:
                if f'{version}: {name}' not in kept:
                    kept[f'{version}: {name}'] = _measure(name, tree, quick)
                    write_runs(kept, 'targets', path)
                    _write(kept, commit, now, folder)
    _write(kept, commit, now, folder)


def _measure(name: str, tree: str, quick: bool) -> Figures:
    r"""Measures in a process of its own, with the package of a folder. There are no figures of what the package lacks."""
    search = os.pathsep.join([tree, str(ROOT), *filter(None, [os.environ.get('PYTHONPATH')])])
    command = [sys.executable, '-m', 'benchmarks.targets', name, *(['--quick'] if quick else [])]
    environment = {**os.environ, 'PYTHONPATH': search, 'OMP_NUM_THREADS': '1'}
    process = subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True)
    if process.returncode != 0:
        if tree == str(ROOT):
            raise RuntimeError(f'{name}: {process.stderr}')
        return {}
    figures: Figures = json.loads(process.stdout.splitlines()[-1])
    print(f'{name}: {figures}', flush=True)
    return figures


def _write(kept: Mapping[str, Figures], commit: str, now: str, folder: Path) -> None:
    note = (
        'One thread, processor times, in turns, medians; each measure in a process of its own, or from the tables "shuffled", '
        '"locality", "runs" and "runs_start" of this folder. Of more than five figures, the cell has the largest. "when set" '
        'is what the targets were set by, on another day. A target "x" is a bound of "before" over "now", from below. '
        + (f'"before" is commit {commit}. ' if commit else '"before" takes a commit, which --before names. ')
        + f'Lists of graphs have {", ".join(map(str, LISTS))} nodes each, models batches of {GPS[64]} graphs of '
        f'{" and ".join(map(str, GPS))}. Peak memory is that beyond what the process held. '
        f'Load of the machine in the last quarter of an hour: {os.getloadavg()[2]:.0f} processes.'
    )
    rows = [row(target, kept, commit, now, folder) for target in TARGETS]
    write_table('targets', 'Targets of speed and memory', note, rows, folder)


def row(target: Target, kept: Mapping[str, Figures], commit: str, now: str, folder: Path) -> dict[str, object]:
    r"""Returns the row of a target, from the figures of measures by version and name, and from the tables of a folder."""
    before, after = _measured(target, kept, commit), _measured(target, kept, now) or _of_table(target, target.figures, folder)
    compared = {name: before[name] / figure for name, figure in after.items() if name in before} if target.over else after
    bounds = {name: next(bound for part, bound in target.wanted.items() if part in name) for name in compared}
    reached = sum(figure >= bounds[name] if target.over else figure <= bounds[name] for name, figure in compared.items())
    wanted = ', '.join(
        f'{bound:g} ({name})' if len(target.wanted) > 1 else f'{bound:g}' for name, bound in target.wanted.items()
    )
    figures = {name: kept.get(f'{now}: {name}', {}) for name in MEASURES}
    floor = re.sub(r'{(.*)}', lambda name: _shown(figures.get(name[1]) or _of_table(target, name[1], folder)), target.floor)
    return {
        'what': target.what,
        'target': f'{wanted} x' if target.over else wanted,
        'when set': target.first,
        'before': _shown(before),
        'now': _shown(after) + (f' ({_shown(compared)} x)' if target.over and compared else ''),
        'floor': floor,
        'met': '-' if not compared else 'yes' if reached == len(compared) else f'no: {reached} of {len(compared)}',
    }


def _measured(target: Target, kept: Mapping[str, Figures], version: str) -> Figures:
    of_version = [figures for key, figures in kept.items() if key.startswith(f'{version}: {target.source}')]
    found = {
        name: figure
        for figures in of_version
        for name, figure in figures.items()
        if target.figures in name and ('peak' in name) == ('peak' in target.figures)
    }
    return dict(sorted(found.items(), key=lambda item: (int('0' + re.sub(r'\D.*', '', item[0])), item[0])))


def _of_table(target: Target, column: str, folder: Path) -> Figures:
    r"""Returns the figures of a column that have a bound, by the texts of their rows."""
    path = folder / f'{target.source}.csv'
    if not path.is_file():
        return {}
    with path.open(newline='') as file:
        rows = list(csv.DictReader(file))
    names = [', '.join(list(row.values())[: 2 if 'process' not in row else 1]) for row in rows]
    return {
        name: float(row[column])
        for name, row in zip(names, rows, strict=True)
        if row.get(column, '') not in ('', '-') and any(part in name for part in target.wanted)
    }


def _shown(figures: Figures) -> str:
    if len(figures) > 5:
        worst = max(figures, key=lambda name: figures[name])
        return f'at most {_short(figures[worst])} ({worst})'
    return ', '.join(map(_short, figures.values())) or '-'


def _short(figure: float) -> str:
    return f'{figure:.2f}' if figure < 10 else f'{figure:,.0f}'


if __name__ == '__main__':
    torch.set_num_threads(1)
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')
        print(json.dumps(MEASURES[sys.argv[1]]('--quick' in sys.argv)), flush=True)
