r"""The largest graph that each attention takes in a given memory, and a million nodes with each."""

from __future__ import annotations

import math
import resource
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import torch
from torch import Tensor
from torch.nn import Module
from torch.nn.functional import scaled_dot_product_attention
from torch_geometric.nn import GATConv
from torch_geometric.nn.attention import PerformerAttention

from benchmarks.graphs import make_data
from benchmarks.harness import kept_runs, peak_memory, run_all, write_table
from pyg_topomask.graphs.graph import Graph
from pyg_topomask.masks import (
    AdjacencyMask,
    CausalMask,
    ExpanderMask,
    HeatKernelMask,
    Mask,
    PowerSeriesMask,
    ToeplitzMask,
    TreeMask,
)
from pyg_topomask.nn import (
    AsymmetricGRFAttention,
    GRFAttention,
    GRFSoftmaxAttention,
    KMIPAttention,
    MaskedLinearAttention,
    MaskedSoftmaxAttention,
    RWGNKAttention,
    SinDegreeAttention,
)

__all__ = ['ATTENTIONS', 'CHANNELS', 'DEGREE', 'HEADS', 'SDPA', 'DenseAttention', 'attend', 'run']

CHANNELS, HEADS, DEGREE = 64, 4, 6
GIB, BUDGETS, SECONDS = 2**30, (2, 4, 8, 16), 60.0
LADDER = tuple(round(10 ** (step / 2)) for step in range(6, 13))
STEPS = ('training', 'forward')
SDPA = 'dense softmax (SDPA)'
# Memory grows with the graph: attention that takes a million nodes within the least budget takes fewer too.
START = 1_000_000
# Where time is quadratic.
STARTS = {'KMIP': 10_000, SDPA: 10_000}


def _masked(mask: type[Mask]) -> Callable[[], Module]:
    return lambda: MaskedLinearAttention(CHANNELS, HEADS, mask(heads=HEADS))


#: Name of an attention -> the graph that it runs on, and the layer.
ATTENTIONS: dict[str, tuple[str, Callable[[], Module]]] = {
    'Linear': ('random', lambda: MaskedLinearAttention(CHANNELS, HEADS)),
    'Adjacency': ('random', _masked(AdjacencyMask)),
    'PowerSeries': ('random', _masked(PowerSeriesMask)),
    'GRF, edges route': ('random', lambda: GRFAttention(CHANNELS, HEADS, route='edges')),
    'GRF, features route': ('random', lambda: GRFAttention(CHANNELS, HEADS, route='features')),
    'AsymmetricGRF': ('random', lambda: AsymmetricGRFAttention(CHANNELS, HEADS)),
    'GRFSoftmax': ('random', lambda: GRFSoftmaxAttention(CHANNELS, HEADS)),
    'RWGNK': ('random', lambda: RWGNKAttention(CHANNELS, HEADS)),
    'HeatKernel': ('random', _masked(HeatKernelMask)),
    'Toeplitz': ('grid', _masked(ToeplitzMask)),
    'Tree': ('tree', _masked(TreeMask)),
    'Causal': ('ring', _masked(CausalMask)),
    'SinDegree': ('random', lambda: SinDegreeAttention(CHANNELS, HEADS)),
    'Expander': ('random', lambda: MaskedSoftmaxAttention(CHANNELS, HEADS, ExpanderMask())),
    'KMIP': ('random', lambda: KMIPAttention(CHANNELS, HEADS)),
    SDPA: ('none', lambda: DenseAttention(CHANNELS, HEADS)),
    'PerformerAttention': ('none', lambda: PerformerAttention(CHANNELS, HEADS, CHANNELS // HEADS)),
    'GATConv': ('random', lambda: GATConv(CHANNELS, CHANNELS // HEADS, HEADS)),
}


def run(quick: bool, folder: Path) -> None:
    ladder, steps = (LADDER[:1], STEPS[:1]) if quick else (LADDER, STEPS)
    path = kept_runs(folder, 'scale', quick)
    settings = {'channels': CHANNELS, 'heads': HEADS, 'degree': DEGREE, 'budgets': BUDGETS}

    def cell(name: str, step: str, size: int) -> dict[str, float]:
        job = (name, step, size)
        result: dict[str, float] = run_all([job], measure, settings, path)[job]
        return result

    rows = []
    for name, (graph, _) in ATTENTIONS.items():
        start = min(ladder[-1], STARTS.get(name, START))
        for step in steps:
            cells = climb(partial(cell, name, step), ladder, start)
            rows.append({'attention': name, 'step': step, 'graph': graph, **summarize(cells)})
    note = (
        f'The largest N of {", ".join(f"{size:,}" for size in ladder)} with which a training step, or a forward pass without '
        f'gradients, stays in {", ".join(map(str, BUDGETS[:-1]))} and {BUDGETS[-1]} GiB of resident memory beyond that of the '
        f'process, '
        f'including features, graph, walks and everything that is prepared. {CHANNELS} channels, {HEADS} heads, default '
        f'options, float32, one process per measurement. Graphs are random graphs of mean degree {DEGREE}, rings, square grids '
        f'and random recursive trees. Sizes end with a step of more than {BUDGETS[-1]} GiB or {SECONDS:.0f} seconds of one '
        f'core. Smaller sizes are left out if {START:,} fits in {BUDGETS[0]} GiB. ">=" means that nothing larger was measured. '
        f'"bytes per node" is the slope between the two largest N within {BUDGETS[-1]} GiB, or the quotient if only one was '
        f'measured. The search of KMIP and dense softmax take quadratic time. "GiB" and "seconds" (of one core, while the '
        f'other may have been busy) are those at N = {START:,}: inf is beyond the largest budget, and nan was not measured.'
    )
    write_table('scale', 'Largest graph in a given memory, and a million nodes', note, rows, folder)


def climb(measure: Callable[[int], Mapping[str, float]], ladder: tuple[int, ...], start: int) -> dict[int, Mapping[str, float]]:
    r"""Measures the sizes of a ladder, upwards from :obj:`start` until one takes too much memory or time, and downwards until
    one fits the least budget.
    """
    cells: dict[int, Mapping[str, float]] = {}
    for size in (size for size in ladder if size >= start):
        cells[size] = measure(size)
        if cells[size]['GiB'] > BUDGETS[-1] or cells[size]['seconds'] > SECONDS:
            break
    for size in reversed([size for size in ladder if size < start]):
        if cells[min(cells)]['GiB'] <= BUDGETS[0]:
            break
        cells[size] = measure(size)
    return dict(sorted(cells.items()))


def summarize(cells: Mapping[int, Mapping[str, float]]) -> dict[str, object]:
    r"""Returns the columns of one attention."""
    row: dict[str, object] = {}
    for budget in BUDGETS:
        largest = max((size for size, cell in cells.items() if cell['GiB'] <= budget), default=0)
        row[f'N in {budget} GiB'] = f'>= {largest}' if largest == max(cells) else largest
    fit = [cell for cell in cells.values() if cell['GiB'] <= BUDGETS[-1]]
    row['bytes per node'] = math.nan
    if fit:
        before, last = [{'GiB': 0.0, 'nodes': 0}, *fit][-2:]
        row['bytes per node'] = (last['GiB'] - before['GiB']) * GIB / (last['nodes'] - before['nodes'])
    million = cells.get(START, {})
    return row | {key: million.get(key, math.nan) for key in ('GiB', 'seconds')}


def measure(job: tuple[str, str, int]) -> dict[str, float]:
    r"""Measures one step, from making the graph on, in a process of its own: its peak of memory, :obj:`inf` where that is out
    of reach, and its seconds.
    """
    name, step, size = job
    _call(name, step, 64)  # loads libraries and compiles, outside what is measured
    # Beyond the largest budget an allocation fails, rather than the machine.
    data = int(Path('/proc/self/statm').read_text().split()[5]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_DATA, (data + int((BUDGETS[-1] + 0.5) * GIB), resource.RLIM_INFINITY))
    nodes, seconds = size, math.nan

    def work() -> None:
        nonlocal nodes, seconds
        begin = time.process_time()
        nodes = _call(name, step, size)
        seconds = time.process_time() - begin

    try:
        peak = peak_memory(work) / GIB
    except (MemoryError, RuntimeError) as error:
        if isinstance(error, RuntimeError) and 'alloc' not in str(error).lower():
            raise
        peak = math.inf
    return {'GiB': peak, 'nodes': nodes, 'seconds': seconds}


def _call(name: str, step: str, size: int) -> int:
    r"""Makes graph, features and layer, runs the layer forward, and backward in training, and returns the number of nodes."""
    torch.manual_seed(0)
    kind, make = ATTENTIONS[name]
    layer, graph = make(), Graph.from_data(make_data(kind, size, DEGREE))
    training = step == 'training'
    x = torch.randn(graph.num_nodes, CHANNELS, requires_grad=training)
    with torch.set_grad_enabled(training):
        out = attend(layer, x, graph)
    if training:
        out.sum().backward()
    return graph.num_nodes


def attend(layer: Module, x: Tensor, graph: Graph) -> Tensor:
    r"""Runs a layer of :obj:`ATTENTIONS` on a graph, or on a batch of graphs of equal size."""
    if isinstance(layer, GATConv):
        out: Tensor = layer(x, graph.edge_index)
    elif isinstance(layer, (PerformerAttention, DenseAttention)):
        out = layer(x.view(graph.num_graphs, -1, x.size(1)))
    else:
        out = layer(x, graph.edge_index, graph=graph)
    return out


class DenseAttention(Module):
    r"""Attention between all nodes of equal graphs, with the projections of the layers of this package.

    Args:
        channels (int): Size of each input and output sample.
        heads (int): The number of heads.
        attend (callable): From queries, keys and values :obj:`[B, heads, N, channels / heads]` to outputs of that shape.
            (default: :func:`~torch.nn.functional.scaled_dot_product_attention`)
    """

    def __init__(
        self,
        channels: int,
        heads: int,
        attend: Callable[[Tensor, Tensor, Tensor], Tensor] = scaled_dot_product_attention,
    ) -> None:
        super().__init__()
        self.heads = heads
        self.attend = attend
        self.lin_in = torch.nn.Linear(channels, 3 * channels)
        self.lin_out = torch.nn.Linear(channels, channels)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.lin_in(x).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        out: Tensor = self.lin_out(self.attend(q, k, v).transpose(1, 2).flatten(2))
        return out
