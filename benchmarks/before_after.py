r"""The hot paths as they are, beside an earlier commit of this repository: what a pass over their speed has gained."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import torch
from torch import Tensor
from torch_geometric.data import Batch, Data
from tqdm import tqdm

from benchmarks.graphs import random_graph
from benchmarks.harness import Unavailable, interleaved_medians, write_table
from pyg_topomask import Graph
from pyg_topomask.masks import GRFMask, HeatKernelMask, PowerSeriesMask, RWGNKMask, SinDegreeMask, ToeplitzMask, TreeMask
from pyg_topomask.nn import GRFAttention, KMIPAttention
from pyg_topomask.ops import masked_linear_attention, topk_inner_product
from pyg_topomask.transforms import AddGridShape
from pyg_topomask.walks import WalkSettings, sample_walks

__all__ = ['run']

ROOT = Path(__file__).parents[1]
#: The commit to compare with; the default is the last one before the first pass over speed.
BEFORE = 'db68ae1'
HEADS, FEATURES, DEGREE = 4, 16, 6
WALKS, P_HALT, LENGTH = 4, 0.5, 10


def run(quick: bool, folder: Path) -> None:
    commit = os.environ.get('PYG_TOPOMASK_BEFORE', BEFORE)
    with tempfile.TemporaryDirectory() as earlier, ExitStack() as stack:
        _unpack(commit, Path(earlier))
        before, after = (stack.enter_context(_Package(tree, quick)) for tree in (earlier, str(ROOT)))
        rows = []
        for path in tqdm(_paths(20), desc='before_after'):
            functions = {'before': partial(before.run, path), 'after': partial(after.run, path)}
            medians = interleaved_medians(functions, 1 if quick else 9)
            rows.append(
                {
                    'path': path,
                    'before ms': medians['before'] * 1e3,
                    'after ms': medians['after'] * 1e3,
                    'before / after': medians['before'] / medians['after'],
                }
            )
    note = (
        f'The package at commit {commit} beside this one, each in a process of its own, call by call in turns; the paths are '
        f'those of benchmarks/before_after.py, for both alike, with gradients where there are any. {HEADS} heads, {FEATURES} '
        f'features and channels each, float32, random graphs with {DEGREE} neighbours a node; walks: {WALKS} a node, p_halt '
        f'{P_HALT}, at most {LENGTH} hops. Medians of 9. PYG_TOPOMASK_BEFORE names another commit. At {BEFORE} '
        f'Toeplitz products kept transforms for the backward pass, which they make again now, and trees were summed in float32 '
        f'by Numba, which lost digits along paths.'
    )
    write_table('before_after', 'Hot paths before and after the passes over their speed', note, rows, folder)


def _unpack(commit: str, folder: Path) -> None:
    command = ['git', 'archive', '--format=tar', commit, 'pyg_topomask']
    try:
        archive = subprocess.run(command, cwd=ROOT, check=True, capture_output=True).stdout
    except (FileNotFoundError, subprocess.CalledProcessError) as error:
        raise Unavailable(f'no commit {commit} of this repository: it takes git, and a clone with its history') from error
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        tar.extractall(folder, filter='data')


class _Package:
    r"""A process in which the package of a folder waits for calls."""

    def __init__(self, tree: str, quick: bool) -> None:
        path = os.pathsep.join([tree, str(ROOT), *filter(None, [os.environ.get('PYTHONPATH')])])
        command = [sys.executable, '-m', 'benchmarks.before_after', *(['--quick'] if quick else [])]
        environment, pipe = {**os.environ, 'PYTHONPATH': path}, subprocess.PIPE
        self.process = subprocess.Popen(command, cwd=tree, env=environment, stdin=pipe, stdout=pipe, text=True)

    def __enter__(self) -> _Package:
        return self

    def __exit__(self, *error: object) -> None:
        self.process.kill()
        self.process.wait()

    def run(self, path: str) -> None:
        r"""Runs a path once."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print(path, file=self.process.stdin, flush=True)
        if not self.process.stdout.readline():
            raise RuntimeError(f'{path}: the process that ran it has ended')


def _serve(quick: bool) -> None:
    r"""Runs the paths that standard input names, and prints a line after each."""
    paths = _paths(20 if quick else 1)
    for line in sys.stdin:
        paths[line.strip()]()
        print(flush=True)


def _paths(scale: int) -> dict[str, Callable[[], object]]:
    torch.manual_seed(0)
    large, medium = 100_000 // scale, 50_000 // scale
    edges, graph = random_graph(large, DEGREE), _random(medium)
    settings = WalkSettings(WALKS, P_HALT, LENGTH)
    kept, grf = Graph.from_tensors(edges, large), GRFMask(HEADS, WALKS, P_HALT, LENGTH)
    side, trees = 200 // scale, _recursive_tree(large)
    grid = Graph.from_data(AddGridShape((side, side))(Data(num_nodes=side**2)))
    sizes = torch.randint(10, 31, (1_000 // scale,)).tolist()
    batch = Batch.from_data_list([Data(edge_index=random_graph(size, DEGREE), num_nodes=size) for size in sizes])
    inputs = torch.rand(3, 10_000 // scale, 1, FEATURES).unbind(0)
    pointer = torch.tensor([0, len(inputs[0])])
    return {
        'walks on a new graph, coalesced': lambda: sample_walks(Graph.from_tensors(edges, large), settings, 0),
        'walks on a graph that is kept, coalesced': lambda: sample_walks(kept, settings, 0),
        'pairing of walks': lambda: grf(Graph.from_tensors(graph.edge_index, medium)).entries(),
        'edges route': _attend(grf, graph, 'edges'),
        'features route, power series': _attend(PowerSeriesMask(HEADS, 4), graph, 'features'),
        'features route, heat kernel': _attend(HeatKernelMask(HEADS), _random(medium // 10), 'features'),
        'low-rank route, sin-degree': _attend(SinDegreeMask(HEADS), graph, 'low_rank'),
        'RWGNK, 1,000 small graphs': _attend(RWGNKMask(HEADS), Graph.from_data(batch), 'auto'),
        'power series, 1,000 small graphs': _attend(PowerSeriesMask(HEADS, 4), Graph.from_data(batch), 'auto'),
        'Toeplitz product': _multiply(ToeplitzMask(HEADS, 2, 'distance', initial='tanh'), grid),
        'tree product, exp(a dist + b)': _multiply(TreeMask(HEADS), trees),
        'tree product, any f(dist)': _multiply(TreeMask(HEADS, 'distance'), trees),
        'top-10 search': lambda: topk_inner_product(inputs[0], inputs[1], 10, pointer),
        'GRF layer': _layer(
            GRFAttention(HEADS * FEATURES, HEADS, num_walks=WALKS, p_halt=P_HALT, max_walk_length=LENGTH), medium
        ),
        'k-MIP layer': _layer(KMIPAttention(HEADS * FEATURES, HEADS, k=10), 20_000 // scale),
    }


def _random(size: int) -> Graph:
    return Graph.from_tensors(random_graph(size, DEGREE), size)


def _recursive_tree(size: int) -> Graph:
    node = torch.arange(1, size)
    return Graph.from_tensors(torch.stack([(torch.rand(size - 1, dtype=torch.float64) * node).long(), node]), size)


def _attend(mask: torch.nn.Module, graph: Graph, route: str) -> Callable[[], object]:
    q, k, v = (torch.rand(graph.num_nodes, HEADS, FEATURES, requires_grad=True) for _ in range(3))
    return partial(_train, lambda: masked_linear_attention(q, k, v, mask(graph), route), [q, k, v, *mask.parameters()])


def _multiply(mask: torch.nn.Module, graph: Graph) -> Callable[[], object]:
    x = torch.rand(graph.num_nodes, HEADS, FEATURES, requires_grad=True)
    return partial(_train, lambda: mask(graph).matmul(x), [x, *mask.parameters()])


def _layer(layer: torch.nn.Module, size: int) -> Callable[[], object]:
    x, graph = torch.rand(size, HEADS * FEATURES, requires_grad=True), _random(size)
    return partial(_train, lambda: layer(x, graph.edge_index, graph=graph), [x, *layer.parameters()])


def _train(function: Callable[[], Tensor], inputs: list[Tensor]) -> None:
    torch.autograd.grad(function().sum(), inputs, allow_unused=True)


if __name__ == '__main__':
    _serve('--quick' in sys.argv)
