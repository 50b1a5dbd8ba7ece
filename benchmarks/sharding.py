r"""One graph in several processes: time, memory and bytes sent."""

from __future__ import annotations

import ctypes
import gc
import itertools
import math
import multiprocessing
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor
from tqdm import tqdm

from benchmarks.harness import Unavailable, peak_memory, status, write_table
from pyg_topomask.distributed import ShardedGraph, mean_over_nodes, sum_gradients
from pyg_topomask.distributed.communication import processes as connected_processes
from pyg_topomask.graphs.graph import Graph
from pyg_topomask.masks import AdjacencyMask, CausalMask, GRFMask, PackingMask, PowerSeriesMask
from pyg_topomask.nn import MaskedLinearAttention

__all__ = ['run']

CHANNELS, HEADS, ORDER, WALKS = 32, 4, 4, 4
# Steps that are timed, after a first one.
STEPS = 2
# The nodes of the graph with many edges, its training steps, and the parts of the bytes of its edges that a process may add.
NODES, FEW_STEPS, PARTS = 10_000, 3, (1 / 2, 1 / 3, 1 / 4)
_M_MMAP_THRESHOLD = -3  # of malloc.h
# Bytes per second that a process sends in the computed table.
BANDWIDTH = 25e9
# Edges to each side of a node on the ring, and how many nodes have one edge to a far node among them.
NEAR, FAR = 4, 20

LAYERS: dict[str, Callable[[], torch.nn.Module]] = {
    'packing': lambda: MaskedLinearAttention(CHANNELS, HEADS, PackingMask(HEADS)),
    'adjacency': lambda: MaskedLinearAttention(CHANNELS, HEADS, AdjacencyMask(HEADS)),
    'power series': lambda: MaskedLinearAttention(CHANNELS, HEADS, PowerSeriesMask(HEADS, ORDER)),
    'GRF': lambda: MaskedLinearAttention(CHANNELS, HEADS, GRFMask(HEADS, WALKS, max_walk_length=3)),
    'causal': lambda: MaskedLinearAttention(CHANNELS, HEADS, CausalMask(HEADS)),
}


def run(quick: bool, folder: Path) -> None:
    write_computed(folder)
    if sys.platform != 'linux':
        raise Unavailable('memory is read from /proc and limited by RLIMIT_DATA, which only Linux has')
    write_limited(1_000_000 if quick else 12_000_000, folder)
    write_measured(2_000 if quick else 60_000, folder)


def together(function: Callable[..., Any], processes: int, *arguments: object) -> list[Any]:
    r"""Calls a function in several processes that are connected, with their number and the arguments."""
    with tempfile.TemporaryDirectory() as folder:
        context = multiprocessing.get_context('spawn')
        with ProcessPoolExecutor(processes, mp_context=context) as pool:
            futures = [
                pool.submit(_connected, function, f'file://{folder}/store', rank, processes, *arguments)
                for rank in range(processes)
            ]
            return [future.result() for future in futures]


def _connected(function: Callable[..., Any], store: str, rank: int, processes: int, *arguments: object) -> Any:
    torch.set_num_threads(1)
    # Large arrays return to the system as soon as they are freed: what counts is memory in use, not holes between arrays.
    ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, 2**18)
    dist.init_process_group('gloo', init_method=store, rank=rank, world_size=processes)
    try:
        with connected_processes().reporting():
            return function(*arguments)
    finally:
        dist.destroy_process_group()


def write_measured(size: int, folder: Path) -> None:
    r"""Writes the table of what is measured here."""
    by_processes = {count: together(measure_all, count, size) for count in tqdm((1, 2, 4), desc='sharding')}
    rows: list[dict[str, object]] = []
    for name in LAYERS:
        alone = by_processes[1][0][name]
        for processes, of_all in by_processes.items():
            results = [of_one[name] for of_one in of_all]
            grads, peak = results[0]['grads'], max(result['peak'] for result in results)
            difference = max(float((grads[key] - grad).abs().max()) for key, grad in alone['grads'].items())
            rows.append(
                {
                    'mask': name,
                    'processes': processes,
                    'seconds per step': max(result['seconds'] for result in results),
                    'peak MB of a process': peak / 2**20,
                    'peak / one process': peak / alone['peak'],
                    'MB sent by a process and step': max(result['sent'] for result in results) / 1e6,
                    'bytes sent / formula': max(result['ratio'] for result in results),
                    'largest difference of gradients': difference / alone['largest'],
                }
            )
    note = (
        f'A training step of a layer of linear attention with {CHANNELS} channels and {HEADS} heads in float32, on a ring of '
        f'{size} nodes with edges to {NEAR} nodes on each side, and of one in {FAR} to a far one. One thread a process, '
        f'connected by gloo. One process has the whole graph and no processes to talk to. Memory is what graph and training '
        f'take beyond the libraries; arrays of 256 KiB and more return to the system when they are freed. Gradients are those '
        f'of all parameters, compared with one process and relative to the largest. Four processes share the cores of the '
        f'machine, so their times say little. In one process, a power series keeps several times as much memory to save time, '
        f'and compiled code fuses its products.'
    )
    write_table('sharding', 'One graph in several processes', note, rows, folder)


def write_limited(edges: int, folder: Path) -> None:
    r"""Writes the table of a graph whose edges exceed the memory that a process may use."""
    rows: list[dict[str, object]] = []
    with tempfile.TemporaryDirectory() as temporary:
        path, small, files = (str(Path(temporary, name)) for name in ('edges.npy', 'small.npy', 'files'))
        for name, count in ((path, edges), (small, 4_000)):
            ends = np.lib.format.open_memmap(name, 'w+', np.int64, (2, count))
            generator = np.random.default_rng(0)
            for begin in range(0, count, 2**18):
                ends[:, begin : begin + 2**18] = generator.integers(0, NODES, ends[:, begin : begin + 2**18].shape)
            ends.flush()
        size = 2 * 8 * edges
        for where, processes, given in (
            ('the memory of one process', 1, None),
            ('files that one process maps', 1, files),
            ('the memory of two processes', 2, None),
            ('files that two processes map', 2, files),
        ):
            for limit in (None, *(int(part * size) for part in PARTS)):
                results = together(train_limited, processes, path, small, given, limit)
                rows.append(
                    {
                        'edges lie in': where,
                        'processes': processes,
                        'MB of edges': size / 1e6,
                        'MB that a process may add': 'any' if limit is None else limit / 1e6,
                        'outcome': next((error for error, _, _ in results if error), 'trains'),
                        'loss after the last step': '' if math.isnan(results[0][1]) else results[0][1],
                        'seconds': max(seconds for _, _, seconds in results),
                    }
                )
    note = (
        f'{FEW_STEPS} training steps of GRF attention with {CHANNELS} channels and {HEADS} heads on a random graph of {NODES} '
        f'nodes, whose edges are int64 in a file. Before the limit is set, each process trains on a small graph, so that '
        f'libraries are loaded. The limit is RLIMIT_DATA: it counts memory of the process, in use and reserved, but no pages '
        f'of mapped files, which the system drops where memory is short. The first rows load the file as a Graph. The others '
        f'use ShardedGraph.from_file, with folder=... for files.'
    )
    write_table('sharding_limited', 'A graph whose edges exceed the memory of a process', note, rows, folder)


def train_limited(path: str, small: str, folder: str | None, limit: int | None) -> tuple[str, float, float]:
    r"""Trains on the edges of a file with so many bytes beyond what a process holds at first. Returns the error, or an empty
    text, the last loss, and the seconds.
    """
    import resource  # Windows has no such module

    _train_file(small, folder)
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    before = resource.getrlimit(resource.RLIMIT_DATA)
    if limit is not None:
        resource.setrlimit(resource.RLIMIT_DATA, (status('VmData') + limit, before[1]))
    begin = time.perf_counter()
    try:
        with connected_processes().reporting():
            error, loss = '', _train_file(path, folder)
    except (MemoryError, RuntimeError) as failure:
        error, loss = f'{type(failure).__name__}: {str(failure).splitlines()[0]}', float('nan')
    resource.setrlimit(resource.RLIMIT_DATA, before)
    return error, loss, time.perf_counter() - begin


def _train_file(path: str, folder: str | None) -> float:
    alone = dist.get_world_size() == 1 and folder is None
    graph = Graph(torch.from_numpy(np.load(path)), NODES) if alone else ShardedGraph.from_file(path, NODES, folder=folder)
    x = features_of(graph.nodes if isinstance(graph, ShardedGraph) else torch.arange(NODES))
    torch.manual_seed(0)
    layer = LAYERS['GRF']()
    optimizer = torch.optim.SGD(layer.parameters(), 0.1)
    for _ in range(FEW_STEPS):
        optimizer.zero_grad()
        out = layer(x, graph=graph).square().sum(1)
        loss = mean_over_nodes(out, graph) if isinstance(graph, ShardedGraph) else out.mean()
        loss.backward()
        if isinstance(graph, ShardedGraph):
            sum_gradients(layer, graph)
        optimizer.step()
    return float(loss.detach())


def ring_edges(first: int, after: int, size: int) -> Tensor:
    r"""Returns the edges to some of the nodes, a function of these alone, :obj:`[2, E]`."""
    targets = torch.arange(first, after)
    steps = torch.tensor([step for step in range(-NEAR, NEAR + 1) if step != 0])
    near = (targets.unsqueeze(1) + steps) % size
    reached = targets[targets % FAR == 0]
    sources = torch.cat([near.flatten(), reached * 7919 % size])
    return torch.stack([sources, torch.cat([targets.repeat_interleave(len(steps)), reached])])


def features_of(nodes: Tensor) -> Tensor:
    r"""Returns features that are a function of the nodes alone."""
    return torch.sin(nodes.unsqueeze(1) * torch.arange(1, CHANNELS + 1) * 0.37).float()


def measure_all(size: int) -> dict[str, dict[str, Any]]:
    r"""Trains every layer on the share of a process, one after the other."""
    results = {}
    for name in LAYERS:
        measure(name, 1_000)  # libraries are loaded at their first use
        gc.collect()
        results[name] = measure(name, size)
    return results


def measure(name: str, size: int) -> dict[str, Any]:
    r"""Trains on the share of a process, and returns what it took."""
    rank, processes = dist.get_rank(), dist.get_world_size()
    result: dict[str, Any] = {}

    def train() -> None:
        torch.manual_seed(0)
        layer = LAYERS[name]()
        first, after = size * rank // processes, size * (rank + 1) // processes
        edges = ring_edges(first, after, size)
        graph = Graph(edges, size) if processes == 1 else ShardedGraph.from_parts(edges, size)
        del edges
        x = features_of(torch.arange(first, after)).requires_grad_()
        seconds, sent = [], 0
        for _ in range(1 + STEPS):
            layer.zero_grad()
            begin, before = time.perf_counter(), _sent(graph)
            out = layer(x, graph=graph).square().sum(1)
            sent = _sent(graph) - before
            if isinstance(graph, ShardedGraph):
                loss = mean_over_nodes(out, graph)
                before = graph.bytes_sent
                loss.backward()
                sent += graph.bytes_sent - before
                sum_gradients(layer, graph)
            else:
                out.mean().backward()
            seconds.append(time.perf_counter() - begin)
        grads = {key: parameter.grad for key, parameter in layer.named_parameters() if parameter.grad is not None}
        largest = max(float(grad.abs().max()) for grad in grads.values())
        result.update(seconds=median(seconds[1:]), grads=grads, largest=largest, sent=sent, ratio=float('nan'))
        if isinstance(graph, ShardedGraph):
            result['ratio'] = sent / measured_formula(name, graph, layer)

    result['peak'] = peak_memory(train)
    return result


def _sent(graph: Graph) -> int:
    return graph.bytes_sent if isinstance(graph, ShardedGraph) else 0


#: Numbers that a process sends in a training step, forward and backward, by the docstring of ShardedGraph: of the number of
#: processes P, the nodes of the process n, those it sends S and receives R, heads H, features m and channels d, terms K.
FORMULAS: dict[str, Callable[..., float]] = {
    'packing': lambda P, n, S, R, H, m, d, K: 2 * (2 * (P - 1) / P) * H * m * (d + 2),
    'sin-degree': lambda P, n, S, R, H, m, d, K: 2 * (2 * (P - 1) / P) * 2 * H * m * (d + 2),
    'adjacency': lambda P, n, S, R, H, m, d, K: H * (m + d) * (S + R),
    'expander': lambda P, n, S, R, H, m, d, K: H * (m + d) * (S + R),
    'hop': lambda P, n, S, R, H, m, d, K: H * (m + d) * (S + R),
    'power series': lambda P, n, S, R, H, m, d, K: K * H * m * ((d + 2) * S + (d + 1) * (S + R)),
    'heat kernel': lambda P, n, S, R, H, m, d, K: K * H * m * ((d + 2) * S + (d + 1) * (S + R)),
    'GRF': lambda P, n, S, R, H, m, d, K: H * (m + d) * (S + R),
    'RWGNK, sampled': lambda P, n, S, R, H, m, d, K: H * (m + d + 1) * (S + R),
    'RWGNK, exact': lambda P, n, S, R, H, m, d, K: K * H * m * ((d + 2) + 2 * (d + 1)) * (S + R),
    'causal': lambda P, n, S, R, H, m, d, K: (P - 1) * H * m * ((d + 2) + 2 * (d + 1)),
    'Toeplitz': lambda P, n, S, R, H, m, d, K: 2 * n * (P - 1) / P * H * m * ((d + 2) + 2 * (d + 1)),
    'softmax over edges': lambda P, n, S, R, H, m, d, K: 2 * H * d * (S + R),
    'k-MIP': lambda P, n, S, R, H, m, d, K: (P - 1) * n * H * d + 2 * H * d * (S + R),
}


# Of the computed table: nodes of other processes that neighbors add for each node of a mesh, neighbors on a random graph, nodes
# whose walks meet those of a node, and random neighbors of an expander.
BOUNDARY, DEGREE, MET, FAR_OF_EXPANDER = 0.1, 8, 20, 6
#: What the halo of a mask consists of, unless it is that of the neighbors: layers of neighbors on a mesh, and for each node the
#: number of random nodes beside them, and on a random graph.
REACH: dict[str, tuple[int, int, int]] = {
    'expander': (1, FAR_OF_EXPANDER, DEGREE + FAR_OF_EXPANDER),
    'hop': (2, 0, DEGREE + DEGREE**2),
    'GRF': (2, 0, MET),
    'RWGNK, sampled': (2, 0, MET),
    'k-MIP': (0, 40, 40),
}


def measured_formula(name: str, graph: ShardedGraph, layer: Any) -> float:
    r"""Returns the bytes of a step by :obj:`FORMULAS`, with the halo that the mask has."""
    halo, size = graph.halo, CHANNELS // HEADS
    if name == 'GRF':
        halo = graph.state(layer.mask).meetings.halo
    numbers = FORMULAS[name](graph.group.size, graph.num_nodes, halo.send.numel(), halo.nodes.numel(), HEADS, size, size, ORDER)
    return 4 * numbers


def computed_bytes(name: str, nodes: float, processes: int, mesh: bool) -> float:
    r"""Returns the bytes that a process sends in a step, by :obj:`FORMULAS`.

    Args:
        name (str): The mask.
        nodes (float): The nodes of all processes.
        processes (int): The number of processes.
        mesh (bool): Whether the graph is a mesh, or random.
    """
    local = nodes / processes
    layers, far, far_of_random = REACH.get(name, (1, 0, DEGREE))
    # Of so many random nodes for each node, this many are distinct and in other processes.
    random = (processes - 1) * -math.expm1(-(far if mesh else far_of_random) / processes)
    halo = local * (layers * BOUNDARY + random if mesh else random)
    return 4 * FORMULAS[name](processes, local, halo, halo, 4, 16, 16, 4)


def write_computed(folder: Path) -> None:
    r"""Writes the table of what the formulas say of larger graphs and more processes. Nothing in it is measured."""
    rows: list[dict[str, object]] = []
    for name in FORMULAS:
        row: dict[str, object] = {'mask': name}
        for where, mesh in (('mesh', True), ('random', False)):
            row[f'bytes per node, {where}'] = computed_bytes(name, 8e7, 8, mesh) / 1e7
        for nodes, processes in itertools.product((1e8, 1e9), (8, 64, 512)):
            row[f'seconds, {nodes:.0e} nodes, {processes} processes'] = computed_bytes(name, nodes, processes, True) / BANDWIDTH
        rows.append(row)
    note = (
        f'COMPUTED from the formulas of pyg_topomask.distributed.ShardedGraph; no graph of this size was trained on. The '
        f'table "sharding" confirms the formulas of packing, adjacency, power series, GRF and causal for two and four '
        f'processes. Bytes that a process sends in a step, forward and backward, with 4 heads of 16 features and 16 '
        f'channels in float32 and series of 4 terms. Bytes per node are those of 8 processes with 10^7 nodes each. On a mesh, '
        f'the neighbors of the nodes of a process add {BOUNDARY} nodes of other processes for each node. On a random graph, a '
        f'node has {DEGREE} neighbors anywhere. Hops are 2. Walks meet walks from nodes at up to 2 hops on a mesh, and from '
        f'{MET} nodes on a random graph, as the 4 walks of the table "sharding" do. An expander adds {FAR_OF_EXPANDER} random '
        f'neighbors. k-MIP chooses 10 keys anywhere for each of 4 heads. Seconds are the bytes with the halo of a mesh at '
        f'{BANDWIDTH / 1e9:.0f} GB/s a process (a link of 200 Gbit/s), without latency, overlap or computation.'
    )
    write_table('sharding_bytes', 'Bytes that masks send, computed', note, rows, folder)
