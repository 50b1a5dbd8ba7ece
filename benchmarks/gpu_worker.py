r"""Measures one attention after the other in a process that may be lost: seconds, memory, host synchronisations."""

from __future__ import annotations

import gc
import multiprocessing
import os
import re
import statistics
import time
import warnings
from collections.abc import Callable
from functools import cache, partial
from multiprocessing.connection import Connection
from typing import Any

import torch
from torch import Tensor
from torch.nn import Module
from torch_geometric.data import Batch

from benchmarks.graphs import make_data
from benchmarks.harness import peak_memory
from benchmarks.scale import ATTENTIONS, CHANNELS, DEGREE, HEADS, SDPA, DenseAttention, attend
from pyg_topomask.graphs.graph import Graph
from pyg_topomask.ops.topk.searches import load_keops

__all__ = ['LAYERS', 'Job', 'Row', 'Worker', 'device', 'measure', 'try_to_measure']

BASELINE, FLEX, KEOPS = 'GATConv', 'FlexAttention', 'KeOps'
MEASURED, NO_MEMORY, SLOW = 'measured', 'out of memory', 'longer than'
#: Seconds of the repetitions of a step.
REPETITIONS = 0.5
BATCH_DEGREE = 4

#: Columns of a table.
Row = dict[str, Any]
#: Precision, number of graphs, nodes of each, attention.
Job = tuple[str, int, int, str]


@cache
def _flex() -> Callable[..., Tensor]:
    from torch.nn.attention.flex_attention import flex_attention

    torch._dynamo.config.recompile_limit = 64  # data types, and with and without gradients
    compiled: Callable[..., Tensor] = torch.compile(flex_attention, dynamic=True, fullgraph=True)
    return compiled


def _keops(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    lazy_tensor = load_keops()
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


class Worker:
    r"""A process that measures one job after the other. It is replaced if it ends, takes too long or has lost the GPU."""

    ready: bool

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
        result: Row | str = f'{SLOW} {seconds:.0f} s'
        usable = False
        try:
            self.pipe.send(job)
            if self.pipe.poll(seconds):
                result, usable = self.pipe.recv()
        except (EOFError, OSError):
            self.process.join()
            return f'the process ended with status {self.process.exitcode}'
        if not usable:
            self._stop()
        return result

    def _start(self) -> None:
        context = multiprocessing.get_context('spawn')
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=_work, args=(theirs,))
        self.process.start()
        theirs.close()
        self.ready = False  # until it has imported everything

    def _stop(self) -> None:
        self.process.kill()
        self.process.join()


def _work(pipe: Connection) -> None:
    r"""Measures jobs until the other end is closed."""
    weight = torch.ones(64, 64, device=device(), requires_grad=True)
    (weight @ weight).sum().backward()  # what libraries take once
    gc.freeze()  # the garbage of a job is then soon collected
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
    degree = DEGREE if graphs == 1 else BATCH_DEGREE
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
    return {'outcome': MEASURED, **milliseconds, 'peak MB': peak / 1e6, 'host syncs': _count_syncs(partial(train, graph))}


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


def _count_syncs(function: Callable[[], object]) -> int:
    r"""Counts the host synchronisations of which torch warns, or on a CPU the numbers that Python reads."""
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
