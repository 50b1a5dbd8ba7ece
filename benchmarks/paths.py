r"""The hot paths by name, and a process that runs them on demand.

An earlier commit of this repository runs them as well: what they import must be there.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor
from torch_geometric.data import Batch, Data

from benchmarks.graphs import random_graph
from benchmarks.steps import ATTENTIONS, make_graphs, make_steps
from pyg_topomask import Graph
from pyg_topomask.masks import GRFMask, HeatKernelMask, PowerSeriesMask, RWGNKMask, SinDegreeMask, ToeplitzMask, TreeMask
from pyg_topomask.nn import GRFAttention, KMIPAttention
from pyg_topomask.ops import masked_linear_attention, topk_inner_product
from pyg_topomask.transforms import AddGridShape
from pyg_topomask.walks import WalkSettings, sample_walks

__all__ = ['CASES', 'DEGREE', 'FEATURES', 'HEADS', 'LENGTH', 'P_HALT', 'WALKS', 'make_layers', 'make_paths']

HEADS, FEATURES, DEGREE = 4, 16, 6
WALKS, P_HALT, LENGTH = 4, 0.5, 10
#: How a layer is timed.
CASES = ('prepared', 'new graph')


def make_paths(scale: int) -> dict[str, Callable[[], object]]:
    r"""Returns the hot paths by name, on graphs that are smaller by a factor."""
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


def make_layers(quick: bool) -> dict[tuple[str, str], tuple[Callable[[], object], ...]]:
    r"""Returns the steps of each attention on each graph, one for each of the :obj:`CASES`."""
    torch.manual_seed(0)
    kinds = [kind for kind in ATTENTIONS if not kind.startswith('Hop')]
    graphs = make_graphs(quick).items()
    return {(name, kind): steps for name, data in graphs for kind, steps in make_steps(data, kinds).items()}


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


def _serve(quick: bool) -> None:
    r"""Runs the paths that standard input names, and prints a line after each."""
    torch.set_num_threads(1)
    paths = make_paths(20 if quick else 1)
    for (graph, kind), steps in make_layers(quick).items():
        paths |= {f'{graph}, {kind}, {case}': step for case, step in zip(CASES, steps, strict=True)}
    for line in sys.stdin:
        paths[line.strip()]()
        print(flush=True)


if __name__ == '__main__':
    _serve('--quick' in sys.argv)
