r"""Training steps with edge weights that are learned from edge features, and with edge features in softmax attention."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import torch
from torch import Tensor
from torch.nn import Module
from torch_geometric.data import Batch, Data
from torch_geometric.utils import to_undirected

from benchmarks.harness import interleaved_medians, peak_memory, write_table
from pyg_topomask.graphs.graph import Graph
from pyg_topomask.masks import (
    AdjacencyMask,
    ExpanderMask,
    GRFMask,
    HeatKernelMask,
    HopMask,
    Mask,
    PowerSeriesMask,
    RWGNKMask,
    TreeMask,
)
from pyg_topomask.nn import EdgeWeights, KMIPAttention, MaskedLinearAttention, MaskedSoftmaxAttention

__all__ = ['run']

CHANNELS, HEADS, EDGE_DIM = 64, 4, 16
#: Graphs of a batch by their number of nodes.
BATCHES = {25: 64, 150: 16, 2_000: 1}
MASKS: dict[str, Callable[[], Mask]] = {
    'Adjacency': partial(AdjacencyMask, HEADS),
    'PowerSeries': partial(PowerSeriesMask, HEADS, 4),
    'HeatKernel': partial(HeatKernelMask, HEADS),
    'Hop': partial(HopMask, HEADS, 4, path_weights='mean'),
    'Tree': partial(TreeMask, HEADS),
    'Expander': partial(ExpanderMask, HEADS, input_edges=True, input_weights=True),
    'RWGNK, exact': partial(RWGNKMask, HEADS, None, transition='weight'),
    'RWGNK, walks': partial(RWGNKMask, HEADS, transition='weight'),
    'GRF': partial(GRFMask, HEADS, transition='weight'),
}
EXPLICIT: dict[str, Callable[[int | None], Module]] = {
    'Adjacency': lambda edge_dim: MaskedSoftmaxAttention(CHANNELS, HEADS, AdjacencyMask(), edge_dim=edge_dim),
    'Hop': lambda edge_dim: MaskedSoftmaxAttention(CHANNELS, HEADS, HopMask(HEADS, 4, positive=True), edge_dim=edge_dim),
    'KMIP': lambda edge_dim: KMIPAttention(CHANNELS, HEADS, edge_dim=edge_dim),
}


def run(quick: bool, folder: Path) -> None:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    counts = {size: min(2, count) if quick else count for size, count in BATCHES.items()}
    batches, trees = ([_batch(size, count, size // 4 * more) for size, count in counts.items()] for more in (1, 0))
    repeats = 1 if quick else 15
    learned = [
        _learned(name, mask, tree if name == 'Tree' else batch, repeats)
        for batch, tree in zip(batches, trees, strict=True)
        for name, mask in MASKS.items()
    ]
    note = (
        f'A training step (forward and backward) of linear attention, {CHANNELS} channels, {HEADS} heads, on batches of random '
        f'undirected trees, with a quarter more edges but under Tree, and {EDGE_DIM} features of an edge, on one thread: '
        'medians of processor times, in turns, of 15 steps. Fixed weights on a new graph are prepared in every step, as in a '
        'shuffled batch, and learned weights always. On a graph that was used before, fixed weights are not prepared. MiB are '
        'the memory of a step at its peak.'
    )
    write_table('edge_weights', 'Training steps with learned edge weights', note, learned, folder)
    features = [_features(name, make, batch, repeats) for batch in batches for name, make in EXPLICIT.items()]
    note = (
        'A training step (forward and backward) of softmax attention over the entries of a mask, and of k-MIP attention, whose '
        'logits and values read edge features or not, on graphs that were used before. The rest is as in edge_weights.'
    )
    write_table('edge_weights_softmax', 'Training steps with edge features in softmax attention', note, features, folder)


def _batch(size: int, count: int, extra: int) -> Batch:
    return Batch.from_data_list([_graph(size, extra) for _ in range(count)])


def _graph(size: int, extra: int) -> Data:
    node = torch.arange(1, size)
    edges = torch.stack([(torch.rand(size - 1) * node).long(), node])
    edges = torch.cat([edges, torch.randint(size, (2, extra))], 1)
    edges, weight = to_undirected(edges, torch.rand(edges.size(1)) + 0.5, reduce='mean')
    x, edge_attr = torch.randn(size, CHANNELS), torch.randn(edges.size(1), EDGE_DIM)
    return Data(x=x, edge_index=edges, edge_attr=edge_attr, edge_weight=weight)


@dataclass(frozen=True)
class _Step:
    r"""A training step of a layer, on a graph that is new, unless one is given."""

    layer: Module
    batch: Batch
    graph: Graph | None = None
    weights: EdgeWeights | None = None
    reads_edges: bool = False

    def __call__(self) -> None:
        x = self.batch.x.detach().requires_grad_()
        graph = Graph.from_data(self.batch) if self.graph is None else self.graph
        if self.weights is not None:
            graph = self.weights.weigh(graph, self.batch.edge_attr, x)
        given = {'edge_attr': self.batch.edge_attr} if self.reads_edges else {}
        out: Tensor = self.layer(x, graph=graph, **given)
        out.sum().backward()


def _learned(name: str, mask: Callable[[], Mask], batch: Batch, repeats: int) -> dict[str, object]:
    layer = MaskedLinearAttention(CHANNELS, HEADS, mask())
    weights, of_heads = (EdgeWeights(EDGE_DIM, symmetric=True, heads=heads) for heads in (None, HEADS))
    unweighted = _without_weights(batch)
    steps = {
        'used': _Step(layer, batch, Graph.from_data(batch)),
        'new': _Step(layer, batch),
        'learned': _Step(layer, unweighted, weights=weights),
        'per head': _Step(layer, unweighted, weights=of_heads),
    }
    seconds = interleaved_medians(steps, repeats, time.process_time)
    memory = {key: peak_memory(step) / 2**20 for key, step in steps.items()}
    return {
        **_sizes(batch),
        'mask': name,
        'fixed, used graph, ms': seconds['used'] * 1e3,
        'fixed, new graph, ms': seconds['new'] * 1e3,
        'learned, ms': seconds['learned'] * 1e3,
        'learned / fixed on a new graph': seconds['learned'] / seconds['new'],
        'learned / fixed on a used graph': seconds['learned'] / seconds['used'],
        'per head / fixed on a new graph': seconds['per head'] / seconds['new'],
        'fixed, new graph, MiB': memory['new'],
        'learned, MiB': memory['learned'],
        'per head, MiB': memory['per head'],
    }


def _features(name: str, make: Callable[[int | None], Module], batch: Batch, repeats: int) -> dict[str, object]:
    batch = _without_weights(batch)
    graph = Graph.from_data(batch)
    steps = {
        'without': _Step(make(None), batch, graph),
        'with': _Step(make(EDGE_DIM), batch, graph, reads_edges=True),
    }
    seconds = interleaved_medians(steps, repeats, time.process_time)
    memory = {key: peak_memory(step) / 2**20 for key, step in steps.items()}
    return {
        **_sizes(batch),
        'attention': name,
        'without edge features, ms': seconds['without'] * 1e3,
        'with, ms': seconds['with'] * 1e3,
        'with / without': seconds['with'] / seconds['without'],
        'without, MiB': memory['without'],
        'with, MiB': memory['with'],
    }


def _without_weights(batch: Batch) -> Batch:
    batch = batch.clone()
    del batch.edge_weight
    return batch


def _sizes(batch: Batch) -> dict[str, object]:
    graphs = 'one graph' if batch.num_graphs == 1 else f'{batch.num_graphs} graphs'
    return {'graphs': graphs, 'nodes of each': batch.num_nodes // batch.num_graphs}
