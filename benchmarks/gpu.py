r"""Every attention on a GPU, in one call of limited time: tests, seconds, memory and waits for the GPU, beside other layers."""

from __future__ import annotations

import gc
import hashlib
import importlib.util
import math
import multiprocessing
import os
import re
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn import Module
from torch_geometric.data import Batch
from tqdm import tqdm

from benchmarks.graphs import make_data
from benchmarks.harness import Unavailable, peak_memory, read_runs, write_runs, write_table
from benchmarks.report.tables import growth_rates
from benchmarks.scale import ATTENTIONS, CHANNELS, DEGREE, HEADS, SDPA, DenseAttention, attend
from pyg_topomask.graph import Graph
from pyg_topomask.ops.topk import keops

__all__ = ['run']

ROOT = Path(__file__).parents[1]
#: Seconds of a call, and of them what is kept for imports before and for plots and the report after.
BUDGET, RESERVE = 540.0, 40.0
#: Seconds after which a measurement is stopped, of a step that is not begun, and of the repetitions of one.
LIMIT, TOO_LONG, REPETITIONS = 45.0, 10.0, 0.5
#: Numbers of graphs and nodes of each, the most telling first.
BATCHES, SIZES, SIZES_BETWEEN = [(128, 23), (32, 100), (16, 400)], (1_000, 10_000, 100_000, 1_000_000), (3_162, 31_623, 316_228)
SMALL_GRAPHS_DEGREE = 4
TESTS, BASELINE, FLEX, KEOPS = 'tests/test_cuda.py', 'GATConv', 'FlexAttention', 'KeOps'
MEASURED, NO_MEMORY, SLOW, SKIPPED = 'measured', 'out of memory', 'longer than', 'skipped after'

Row = dict[str, Any]
Job = tuple[str, int, int, str]


@cache
def _flex() -> Callable[..., Tensor]:
    from torch.nn.attention.flex_attention import flex_attention

    torch._dynamo.config.recompile_limit = 64  # data types, and with and without gradients
    compiled: Callable[..., Tensor] = torch.compile(flex_attention, dynamic=True, fullgraph=True)
    return compiled


def _keops(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    lazy_tensor = keops.load()
    query, key, value = (tensor.flatten(0, 1).contiguous() for tensor in (q * q.size(-1) ** -0.5, k, v))
    score = lazy_tensor(query.unsqueeze(2)) | lazy_tensor(key.unsqueeze(1))
    out: Tensor = score.sumsoftmaxweight(lazy_tensor(value.unsqueeze(1)), dim=2)
    return out.view_as(q)


LAYERS: dict[str, tuple[str, Callable[[], Module]]] = {
    **{name: ATTENTIONS[name] for name in (BASELINE, SDPA, 'PerformerAttention')},
    FLEX: ('none', lambda: DenseAttention(CHANNELS, HEADS, _flex())),
    KEOPS: ('none', lambda: DenseAttention(CHANNELS, HEADS, _keops)),
    **ATTENTIONS,
}


def device() -> torch.device:
    r"""Returns the GPU, or the device that :obj:`TOPOMASK_DEVICE` names."""
    return torch.device(os.environ.get('TOPOMASK_DEVICE', 'cuda'))


def run(quick: bool, folder: Path) -> None:
    begin = time.monotonic()
    if device().type == 'cuda' and not torch.cuda.is_available():
        raise Unavailable('there is no GPU; TOPOMASK_DEVICE=cpu runs the quick form without one')
    if device().type != 'cuda' and not quick:
        raise Unavailable(f'the device is {device()}, which runs the quick form only')
    end = begin + float(os.environ.get('TOPOMASK_BUDGET', BUDGET)) - RESERVE
    settings = {'device': describe_device(), 'code': _hash_of_code(), 'torch': torch.__version__, 'quick': quick}
    path = folder / f'gpu_runs{"_quick" if quick else ""}.json'
    rows: dict[str, Row] = read_runs(settings, path)
    jobs, missing = list_jobs(quick)

    def keep(key: str, row: Row) -> None:
        rows[key] = row
        write_runs(rows, settings, path)
        ordered = [rows[key] for key in (TESTS, *map(str, jobs)) if key in rows]
        _write_tables(ordered, f'{settings["device"]}. {_unfinished(jobs, rows)} {missing}'.strip(), folder)

    with Worker() as worker:  # imports while the tests run
        if TESTS not in rows:
            keep(TESTS, {'attention': TESTS, 'outcome': run_tests(quick, 0.4 * (end - time.monotonic()), folder)})
        for job in tqdm(jobs, desc='gpu'):
            if str(job) in rows:
                continue
            if time.monotonic() > end:
                break
            row = dict(zip(('precision', 'graphs', 'nodes each', 'attention'), job, strict=True))
            seconds = min(LIMIT, end - time.monotonic())
            outcome = why_not(job, list(rows.values())) or worker.measure(job, seconds)
            if isinstance(outcome, str) and outcome.startswith(SLOW) and seconds < LIMIT:
                break  # the budget ended, which says nothing of the attention
            keep(str(job), row | ({'outcome': outcome} if isinstance(outcome, str) else outcome))


def list_jobs(quick: bool) -> tuple[list[Job], str]:
    r"""Returns what is measured, the most telling first, and a sentence on what cannot be."""
    needs = {FLEX: 'triton', KEOPS: 'pykeops'}
    names = [name for name in LAYERS if name not in needs or importlib.util.find_spec(needs[name])]
    if device().type != 'cuda':
        names = [name for name in names if name not in needs]
    batches, sizes, between = ([(4, 23)], (64, 256), ()) if quick else (BATCHES, SIZES, SIZES_BETWEEN)
    first, second = [*batches, *((1, size) for size in sizes)], [(1, size) for size in between]
    jobs = [
        (precision, graphs, nodes, name)
        for shapes in (first, second)
        for precision in ('float32', 'bfloat16')
        for graphs, nodes in shapes
        for name in names
    ]
    missing = [name for name in LAYERS if name not in names]
    return jobs, f'Not available here: {", ".join(missing)}.' if missing else ''


def run_tests(quick: bool, seconds: float, folder: Path) -> str:
    r"""Runs the tests of what a GPU computes, keeps what they print in :obj:`gpu_tests.txt`, and returns their last line."""
    command = [sys.executable, '-m', 'pytest', '-q', '--tb=short', TESTS, *(['-k', 'are_here'] if quick else [])]
    with (folder / 'gpu_tests.txt').open('w+') as file:
        try:
            subprocess.run(command, cwd=ROOT, stdout=file, stderr=subprocess.STDOUT, timeout=seconds, check=False)
        except subprocess.TimeoutExpired:
            return f'not finished after {seconds:.0f} s'
        file.seek(0)
        return [line for line in file.read().splitlines() if line.strip()][-1].strip('= ')


def why_not(job: Job, rows: Sequence[Row]) -> str:
    r"""Returns why a measurement is not begun, which is empty if it is: at a smaller size memory or time ended, or times grow
    so that a step will take too long.
    """
    precision, graphs, nodes, name = job
    wanted = {'precision': precision, 'graphs': graphs, 'attention': name}
    smaller = [row for row in rows if wanted.items() <= row.items() and row['nodes each'] < nodes and graphs == 1]
    for row in smaller:
        if row['outcome'].startswith((NO_MEMORY, SLOW, SKIPPED)):
            return f'{SKIPPED} {row["nodes each"]:,} nodes'
    times = sorted((row['nodes each'], row['new graph ms']) for row in smaller if row['outcome'] == MEASURED)
    if not times:
        return ''
    growth = max([1.0, *growth_rates(times[-2:])])
    expected = times[-1][1] * (nodes / times[-1][0]) ** growth / 1e3
    return f'{SKIPPED} {times[-1][0]:,} nodes' if expected > TOO_LONG else ''


class Worker:
    r"""A process that measures one job after the other. One that ends, takes too long, or has lost the GPU is replaced."""

    def __init__(self) -> None:
        self._start()

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()

    def measure(self, job: Job, seconds: float) -> Row | str:
        r"""Returns the columns of a job, or in words why there are none."""
        if not self.process.is_alive():
            self._start()
        if not self.ready:
            self.ready = bool(self.pipe.recv())
        self.pipe.send(job)
        if not self.pipe.poll(seconds):
            self._stop()
            return f'{SLOW} {seconds:.0f} s'
        try:
            result, usable = self.pipe.recv()
        except EOFError:
            self.process.join()
            return f'the process ended with status {self.process.exitcode}'
        if not usable:
            self._stop()
        return result  # type: ignore[no-any-return]

    def _start(self) -> None:
        context = multiprocessing.get_context('spawn')
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=_work, args=(theirs,))
        self.process.start()
        theirs.close()
        self.ready = False

    def _stop(self) -> None:
        self.process.kill()
        self.process.join()


def _work(pipe: Connection) -> None:
    r"""Measures jobs until the other end is closed."""
    weight = torch.ones(64, 64, device=device(), requires_grad=True)
    (weight @ weight).sum().backward()  # what libraries take once
    pipe.send(True)
    while True:
        try:
            job = pipe.recv()
        except EOFError:
            return
        result, usable = try_to_measure(job), True
        try:
            gc.collect()
            if device().type == 'cuda':
                torch.cuda.synchronize()
                torch.cuda.empty_cache()
        except RuntimeError:  # after some errors a process cannot use the GPU any more
            usable = False
        pipe.send((result, usable))


def try_to_measure(job: Job) -> Row | str:
    try:
        return measure(job)
    except Exception as error:
        text = ' '.join(str(error).split())
        if isinstance(error, MemoryError) or re.search('out of memory|allocate|ALLOC_FAILED', text):
            return NO_MEMORY
        return f'{type(error).__name__}: {text[:120]}'


def measure(job: Job) -> Row:
    r"""Measures a layer on a graph that it has seen, and a step on a new one."""
    precision, graphs, nodes, name = job
    kind, make = LAYERS[name]
    torch.manual_seed(0)
    held = torch.cuda.memory_allocated() if device().type == 'cuda' else 0
    degree = DEGREE if graphs == 1 else SMALL_GRAPHS_DEGREE
    data = Batch.from_data_list([make_data(kind, nodes, degree, seed) for seed in range(graphs)]).to(device())
    layer = make().to(device())
    x = torch.randn(data.num_nodes, CHANNELS, device=device(), requires_grad=True)

    def forward(graph: Graph) -> Tensor:
        with torch.autocast(device().type, torch.bfloat16, enabled=precision == 'bfloat16'):
            return attend(layer, x, graph)

    def train(graph: Graph) -> None:
        forward(graph).float().sum().backward()

    train(Graph.from_data(data))  # compiles, and loads libraries
    graph = Graph.from_data(data)
    peak = _peak_memory(partial(train, graph), held)
    with torch.no_grad():
        seconds = {'forward ms': _median(partial(forward, graph))}
    seconds |= {
        'training ms': _median(partial(train, graph)),
        'new graph ms': _median(lambda: train(Graph.from_data(data))),
    }
    milliseconds = {key: value * 1e3 for key, value in seconds.items()}
    return {'outcome': MEASURED, **milliseconds, 'peak MB': peak / 1e6, 'waits': _count_waits(partial(train, graph))}


def _synchronize() -> None:
    if device().type == 'cuda':
        torch.cuda.synchronize()


def _median(function: Callable[[], object]) -> float:
    r"""Returns the median seconds of a call from an idle device to an idle device."""
    seconds: list[float] = []
    most = 15 if device().type == 'cuda' else 2
    function()
    while not seconds or (len(seconds) < most and sum(seconds) < REPETITIONS):
        _synchronize()
        start = time.perf_counter()
        function()
        _synchronize()
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds)


def _peak_memory(function: Callable[[], object], held: int) -> int:
    if device().type != 'cuda':
        return peak_memory(function)
    torch.cuda.reset_peak_memory_stats()
    function()
    return torch.cuda.max_memory_allocated() - held


def _count_waits(function: Callable[[], object]) -> int:
    r"""Counts how often a call waits for the device: numbers that Python reads, and on a GPU all that torch warns of."""
    if device().type != 'cuda':
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
            function()
        return sum(event.count for event in profile.key_averages() if event.key == 'aten::_local_scalar_dense')
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter('always')
        torch.cuda.set_sync_debug_mode('warn')
        try:
            function()
        finally:
            torch.cuda.set_sync_debug_mode('default')
    return sum('called a synchronizing' in str(warning.message) for warning in caught)


def find_crossovers(rows: Sequence[Row]) -> list[Row]:
    r"""Returns from how many nodes of one graph on each attention is faster than full attention. One that ended by memory or
    time is slower than one that did not. Sizes where both did, or one had another error, say nothing.
    """
    times: dict[tuple[str, str, str], dict[int, float]] = {}
    for row in rows:
        if row.get('graphs') == 1 and row['outcome'].startswith((MEASURED, NO_MEMORY, SLOW, SKIPPED)):
            for step in ('forward', 'training'):
                key = row['precision'], row['attention'], step
                times.setdefault(key, {})[row['nodes each']] = row.get(f'{step} ms', math.inf)
    crossovers = []
    for (precision, name, step), ours in times.items():
        full = times.get((precision, SDPA, step), {})
        sizes = sorted(size for size in ours.keys() & full.keys() if min(ours[size], full[size]) < math.inf)
        if name != SDPA and sizes:
            slower = max((size for size in sizes if ours[size] >= full[size]), default=0)
            first = min((size for size in sizes if size > slower), default='none')
            row = {'precision': precision, 'attention': name, 'step': step}
            crossovers.append(row | {'faster from': first, 'smallest': sizes[0], 'largest': sizes[-1]})
    return crossovers


def _write_tables(rows: Sequence[Row], remark: str, folder: Path) -> None:
    base = {
        (row['precision'], row['graphs'], row['nodes each']): row
        for row in rows
        if row['attention'] == BASELINE and row['outcome'] == MEASURED
    }
    columns = ('precision', 'graphs', 'nodes each', 'attention', 'outcome', 'forward ms', 'training ms', 'new graph ms')
    ratios, others = ('training ms', 'new graph ms'), ('peak MB', 'waits')
    table = []
    for row in rows:
        gat = base.get((row.get('precision'), row.get('graphs'), row.get('nodes each')))
        known = gat is not None and row['outcome'] == MEASURED
        shown: Row = {column: row.get(column, '') for column in columns}
        shown |= {f'{key[:-3]} / {BASELINE}': row[key] / gat[key] if gat and known else '' for key in ratios}
        table.append(shown | {column: row.get(column, '') for column in others})
    note = (
        f'{remark} One layer of {CHANNELS} channels and {HEADS} heads with default options, float32 without TensorFloat-32, or '
        f'bfloat16 by autocast, medians of up to 15 calls or about {REPETITIONS} s, each from an idle device to an idle device. "training" is forward '
        f'and backward on a graph that the layer has seen, "new graph" includes what is prepared once per graph. Random graphs '
        f'of degree {DEGREE}, or {SMALL_GRAPHS_DEGREE} in batches; Toeplitz on square grids with about as many nodes, Tree on '
        f'random trees, Causal on rings. Full attention, PerformerAttention, FlexAttention and KeOps get batches as '
        f'[graphs, nodes, channels], without padding. "peak MB": on a GPU all that torch allocates for features, parameters, '
        f'graph, preparation and a training step; on a CPU the resident memory of the last two. "waits": how often a prepared '
        f'training step waits for the GPU, as torch.cuda.set_sync_debug_mode reports, which does not see everything; on a CPU '
        f'how many numbers Python reads. "{SLOW} {LIMIT:.0f} s" is all of a row; "{SKIPPED}" stands where a smaller size ran '
        f'out of memory or time, or a step would take more than {TOO_LONG:.0f} s if times grow as before. The row {TESTS} is '
        f'what its tests said.'
    )
    write_table('gpu', 'Every attention on a GPU', note, table, folder)
    if crossovers := find_crossovers(rows):
        note = (
            f'{remark} The smallest size in gpu.csv from which on an attention is faster than {SDPA} on one graph, at all '
            f'larger sizes too, or "none"; of the sizes from "smallest" to "largest" at which either could be measured. An attention '
            f'that ran out of memory or time counts as slower.'
        )
        write_table('gpu_crossover', 'Where each attention overtakes full attention on a GPU', note, crossovers, folder)


def _unfinished(jobs: Sequence[Job], rows: Mapping[str, Row]) -> str:
    left = [job for job in jobs if str(job) not in rows]
    if not left:
        return f'All of {len(jobs)} measurements were reached.'
    shapes = dict.fromkeys(f'{graphs} x {nodes:,} in {precision}' for precision, graphs, nodes, _ in left)
    return f'{len(left)} of {len(jobs)} measurements were not reached, of graphs x nodes: {", ".join(shapes)}.'


def describe_device() -> str:
    if device().type != 'cuda':
        return f'Device: {device()}'
    properties: Any = torch.cuda.get_device_properties(device())
    return f'Device: {properties.name}, {properties.total_memory / 2**30:.0f} GiB, CUDA {torch.version.cuda}'


def _hash_of_code() -> str:
    files = [*(ROOT / 'pyg_topomask').rglob('*.py'), *(ROOT / 'benchmarks').glob('*.py'), *(ROOT / 'tests').glob('*.py')]
    code = b''.join(path.read_bytes() for path in sorted(files))
    return hashlib.sha256(code).hexdigest()[:12]
