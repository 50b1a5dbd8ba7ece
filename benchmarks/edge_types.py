r"""A task that needs the types of edges: which models read them, masks with learned edge weights among these."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn import BatchNorm1d, Linear, Module, ModuleList, ReLU, Sequential
from torch.nn.functional import cross_entropy
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader
from torch_geometric.nn import GINEConv, GPSConv
from torch_geometric.utils import to_undirected

from benchmarks.harness import count_parameters, each, kept_runs, run_all, show, write_table
from pyg_topomask.apps.runs.compare import mean_error, verdict
from pyg_topomask.graphs.graph import Graph
from pyg_topomask.masks import HeatKernelMask, HopMask, Mask, PowerSeriesMask
from pyg_topomask.nn import EdgeWeights, MaskedLinearAttention, TopoGPSConv
from pyg_topomask.nn.local_layers import GatedGCNConv

__all__ = ['HEADS', 'WIDTH', 'Job', 'Stack', 'Weighted', 'fit', 'gine', 'majorities', 'mlp', 'run']

TYPES, CLASSES, HEADS, WIDTH = 3, 2, 4, 32
EPOCHS, BATCH, RATE = 30, 32, 3e-3
PARTS = {'train': 1_000, 'val': 200, 'test': 200}


class Task(NamedTuple):
    r"""The hops within which nodes count, the nodes of a graph, their mean degree, and the number of seeds."""

    hops: int
    nodes: int
    degree: float
    seeds: int


TASKS = {'4 hops': Task(4, 40, 4.5, 5), '8 hops': Task(8, 80, 3.9, 3)}


def majorities(task: Task, count: int, generator: np.random.Generator) -> list[Data]:
    r"""Returns random graphs with classes of nodes and types of edges. Every node knows the type that its graph asks for. Its
    label is the class of most nodes within some hops over edges of this type, itself included. Ties have no label (-1).
    """
    graphs = []
    for _ in range(count):
        keys = generator.choice(task.nodes**2, 8 * task.nodes, replace=False)
        ends = np.stack(np.divmod(keys, task.nodes))
        ends = ends[:, ends[0] < ends[1]][:, : round(task.degree * task.nodes / 2)]
        types, asked = generator.integers(TYPES, size=ends.shape[1]), generator.integers(TYPES)
        classes = generator.integers(CLASSES, size=task.nodes)
        joined = np.zeros((task.nodes, task.nodes), dtype=bool)
        joined[tuple(ends[:, types == asked])] = True
        step = joined | joined.T | np.eye(task.nodes, dtype=bool)
        reached = np.linalg.matrix_power(step.astype(np.float64), task.hops) > 0
        votes = np.stack([(reached & (classes == each)).sum(1) for each in range(CLASSES)], 1)
        label = np.where((votes == votes.max(1, keepdims=True)).sum(1) > 1, -1, votes.argmax(1))
        edge_index, edge_attr = to_undirected(torch.from_numpy(ends), torch.eye(TYPES)[types])
        features = np.concatenate([np.eye(CLASSES)[classes], np.tile(np.eye(TYPES)[asked], (task.nodes, 1))], 1)
        x = torch.from_numpy(features).float()
        graphs.append(Data(x=x, edge_index=edge_index, edge_attr=edge_attr, y=torch.from_numpy(label)))
    return graphs


class Weighted(Module):
    r"""Linear attention under a mask, whose edge weights may be learned from edge features and both end nodes."""

    def __init__(self, mask: Mask, weights: EdgeWeights | None) -> None:
        super().__init__()
        self.weights = weights
        self.attention = MaskedLinearAttention(WIDTH, HEADS, mask)

    def forward(self, x: Tensor, edge_index: Tensor, edge_attr: Tensor, graph: Graph) -> Tensor:
        graph = graph if self.weights is None else self.weights.weigh(graph, edge_attr, x)
        out: Tensor = self.attention(x, graph=graph)
        return out


class Model(NamedTuple):
    r"""What makes a layer for a number of hops, the number of layers, and whether it is a mask with learned weights."""

    make: Callable[[int], Module]
    layers: Callable[[int], int]
    learned: bool = False


def mlp(width: int) -> Sequential:
    return Sequential(Linear(WIDTH, width), ReLU(), Linear(width, WIDTH))


def gine() -> GINEConv:
    return GINEConv(mlp(WIDTH), edge_dim=WIDTH)


def _weighted(mask: Callable[[int], Mask], layers: int, learned: bool) -> Model:
    def make(hops: int) -> Weighted:
        return Weighted(mask(hops), EdgeWeights(WIDTH, WIDTH) if learned else None)

    return Model(make, lambda _: layers, learned)


def _series(hops: int) -> Mask:
    return PowerSeriesMask(HEADS, hops)


#: The models by name.
MODELS = {
    'PowerSeries, learned weights, one layer': _weighted(_series, 1, True),
    'PowerSeries, learned weights': _weighted(_series, 2, True),
    'HeatKernel, learned weights': _weighted(lambda _: HeatKernelMask(HEADS), 2, True),
    'Hop, learned weights': _weighted(lambda hops: HopMask(HEADS, hops, path_weights='mean'), 2, True),
    'PowerSeries': _weighted(_series, 2, False),
    'HeatKernel': _weighted(lambda _: HeatKernelMask(HEADS), 2, False),
    'Hop': _weighted(lambda hops: HopMask(HEADS, hops), 2, False),
    'GINE': Model(lambda _: gine(), lambda hops: hops),
    'GatedGCN': Model(lambda _: GatedGCNConv(WIDTH), lambda hops: hops),
    'GPS: GINE and softmax attention': Model(lambda _: GPSConv(WIDTH, gine(), HEADS), lambda hops: hops),
}


class Stack(Module):
    r"""Layers in the same network, but for those of GPS: batch norm, residual connections, feed-forward blocks."""

    def __init__(self, layers: Iterable[Module]) -> None:
        super().__init__()
        self.layers = ModuleList(layers)
        self.norms = ModuleList(BatchNorm1d(WIDTH) for _ in range(2 * len(self.layers)))
        self.blocks = ModuleList(mlp(2 * WIDTH) for _ in self.layers)

    def forward(self, x: Tensor, edge_attr: Tensor, graph: Graph) -> Tensor:
        for place, layer in enumerate(self.layers):
            if isinstance(layer, GPSConv):
                shared = {'graph': graph} if isinstance(layer, TopoGPSConv) else {}
                x = layer(x, graph.edge_index, graph.batch, edge_attr=edge_attr, **shared)
                continue
            given = self.norms[2 * place](x), graph.edge_index, edge_attr
            if isinstance(layer, GatedGCNConv):  # it also changes the edges
                change, edge_attr = layer(*given)
            else:
                change = layer(*given) if isinstance(layer, GINEConv) else layer(*given, graph)
            x = x + change
            x = x + self.blocks[place](self.norms[2 * place + 1](x))
        return x


class Network(Module):
    r"""Classes of nodes from layers of a model."""

    def __init__(self, model: Model, hops: int) -> None:
        super().__init__()
        self.lin_x, self.lin_edge = Linear(CLASSES + TYPES, WIDTH), Linear(TYPES, WIDTH)
        self.stack = Stack(model.make(hops) for _ in range(model.layers(hops)))
        self.lin_out = Sequential(Linear(WIDTH, WIDTH), ReLU(), Linear(WIDTH, CLASSES))

    def forward(self, data: Data) -> Tensor:
        out: Tensor = self.lin_out(self.stack(self.lin_x(data.x), self.lin_edge(data.edge_attr), Graph.from_data(data)))
        return out


class Job(NamedTuple):
    task: str
    model: str
    seed: int
    quick: bool = False


def train(job: Job) -> dict[str, Any]:
    r"""Returns the accuracies after the last epoch, the seconds, and the parameters."""
    task, generator = TASKS[job.task], np.random.default_rng(job.seed)
    graphs = {part: majorities(task, 40 if job.quick else count, generator) for part, count in PARTS.items()}
    torch.manual_seed(job.seed)
    network, epochs = Network(MODELS[job.model], task.hops), 1 if job.quick else EPOCHS
    loader = DataLoader(graphs['train'], BATCH, shuffle=True, generator=torch.Generator().manual_seed(job.seed))
    seconds = fit(network, loader, epochs, RATE, lambda out, y: cross_entropy(out, y, ignore_index=-1))
    accuracies = {part: _accuracy(network, graphs[part]) for part in ('val', 'test')}
    return {**accuracies, 'seconds': seconds, 'parameters': count_parameters(network)}


def fit(
    network: Module, loader: DataLoader | list[Data], epochs: int, rate: float, loss: Callable[[Tensor, Tensor], Tensor]
) -> float:
    r"""Trains a network with one cycle of rates, and returns the seconds of the processor."""
    optimizer = torch.optim.AdamW(network.parameters(), rate)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, rate, total_steps=epochs * len(loader))
    start = time.process_time()
    for _ in range(epochs):
        for data in loader:
            optimizer.zero_grad()
            loss(network(data), data.y).backward()
            optimizer.step()
            scheduler.step()
    return time.process_time() - start


@torch.no_grad()
def _accuracy(network: Network, graphs: list[Data]) -> float:
    network.eval()
    right = [(network(data).argmax(1) == data.y)[data.y >= 0] for data in DataLoader(graphs, BATCH)]
    return float(torch.cat(right).double().mean())


def run(quick: bool, folder: Path) -> None:
    jobs = [
        Job(name, model, seed, quick)
        for name, task in TASKS.items()
        for seed in range(1 if quick else task.seeds)
        for model in (list(MODELS)[1::5] if quick else MODELS)
    ]
    results = run_all(jobs, train, [EPOCHS, BATCH, RATE, PARTS, TASKS], kept_runs(folder, 'edge_types', quick))
    rows: list[dict[str, object]] = []
    for name in TASKS:
        mine = {model: [job for job in jobs if (job.task, job.model) == (name, model)] for model in MODELS}
        validation = {model: sum(results[job]['val'] for job in mine[model]) for model in MODELS if MODELS[model].learned}
        chosen = max(validation, key=validation.__getitem__)
        for model, of_model in mine.items():
            if not of_model:
                continue
            runs, reference = [results[job] for job in of_model], [results[job] for job in mine[chosen]]
            gaps = [one['test'] - other['test'] for one, other in zip(runs, reference, strict=True)]
            mean, error = mean_error(gaps)
            rows.append(
                {
                    'task': name,
                    'model': model,
                    'layers': MODELS[model].layers(TASKS[name].hops),
                    'parameters': runs[0]['parameters'],
                    'validation': show([run['val'] for run in runs]),
                    'test': show([run['test'] for run in runs]),
                    'minus the mask chosen, paired': f'{mean:+.3f} ± {error:.3f}',
                    'verdict': 'reference' if model == chosen else verdict(mean, error),
                    'seconds': sum(run['seconds'] for run in runs) / len(runs),
                    'seeds': each([run['test'] for run in runs]),
                }
            )
    note = (
        'The majority class among the nodes that a node reaches over edges of the type that its graph asks for, within 4 hops '
        f'in graphs of 40 nodes, and within 8 in graphs of 80. There are {TYPES} types of edges, {PARTS["train"]:,} graphs for '
        f'training and {PARTS["test"]} each for validation and test. Accuracy over the nodes without a tie, after {EPOCHS} '
        f'epochs at a rate of at most {RATE}, which no model chose. Message passing has a layer for each hop. All have '
        f'{WIDTH} channels and the same network around their layers; GPS has its own. Differences are paired by seed to the '
        'mask with learned weights that is best in validation; one below two standard errors is "not distinguishable". '
        'Seconds are those of a processor in training, on one thread.'
    )
    write_table('edge_types', 'Majorities over edges of a type', note, rows, folder)
