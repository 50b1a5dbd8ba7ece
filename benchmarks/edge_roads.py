r"""What masks gain from edge weights that are learned from the lengths and speeds of roads."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn import BatchNorm1d, Linear, Module, ReLU, Sequential
from torch.nn.functional import cross_entropy
from torch_geometric.data import Data

from benchmarks.accuracy.roads import eccentricity_on_roads
from benchmarks.edge_features import table_of_gains, table_of_models
from benchmarks.edge_types import HEADS, WIDTH, Stack, fit, gine
from benchmarks.harness import count_parameters, data_folder, kept_runs, run_all, write_table
from benchmarks.molecule_training import MODELS, masked
from pyg_topomask.graphs.graph import Graph
from pyg_topomask.masks import HopMask
from pyg_topomask.nn.local_layers import GatedGCNConv

__all__ = ['run', 'train']

EPOCHS, RATE, SEEDS, CLASSES = 80, 1e-2, 5, 10
FILE = 'chicago_regional.npz'
#: Layers of masks, whose kernels reach 4 edges or more, and of message passing, which then reaches 16 as well.
LAYERS, DEEP = 4, 16
#: What makes a layer, and how many.
NETWORKS: dict[str, tuple[Callable[[], Module], int]] = {
    'Hop': (masked(lambda: HopMask(HEADS, 4), False), LAYERS),
    'Hop, learned weights': (masked(lambda: HopMask(HEADS, 4, path_weights='mean'), True), LAYERS),
    **{name: (MODELS[name], LAYERS) for name in MODELS if name.startswith(('PowerSeries', 'GRF'))},
    'GINE': (gine, DEEP),
    'GatedGCN': (lambda: GatedGCNConv(WIDTH), DEEP),
}


class Job(NamedTuple):
    model: str
    seed: int
    quick: bool = False


class Network(Module):
    r"""Classes of intersections from layers of a model, on one graph."""

    def __init__(self, make: Callable[[], Module], layers: int, data: Data) -> None:
        super().__init__()
        self.lin_x, self.lin_edge = Linear(data.x.size(1), WIDTH), Linear(data.edge_attr.size(1), WIDTH)
        self.stack = Stack(make() for _ in range(layers))
        self.lin_out = Sequential(BatchNorm1d(WIDTH), Linear(WIDTH, WIDTH), ReLU(), Linear(WIDTH, CLASSES))
        self.graph = Graph.from_data(data)

    def forward(self, data: Data) -> Tensor:
        out: Tensor = self.lin_out(self.stack(self.lin_x(data.x), self.lin_edge(data.edge_attr), self.graph))
        return out


def attributes(path: Path, edge_index: Tensor) -> Tensor:
    r"""Returns the logarithms of the length and of the speed of each road, with mean 0 and variance 1, :obj:`[E, 2]`. Of
    parallel links, the shortest counts.
    """
    with np.load(path) as stored:
        links, columns = stored['links'], stored['link_columns'].tolist()
        ends, size = np.sort(stored['edges'], axis=1), len(stored['pos'])
    length, speed = (links[:, columns.index(name)] for name in ('length', 'speed'))
    order = np.argsort(length, kind='stable')
    keys, first = np.unique(ends[order] @ [size, 1], return_index=True)
    asked = np.sort(edge_index.numpy(), axis=0)
    place = order[first[np.searchsorted(keys, asked[0] * size + asked[1])]]
    values = np.log1p(np.stack([length[place], speed[place]], 1))
    return torch.from_numpy((values - values.mean(0)) / (values.std(0) + 1e-6)).float()


def train(job: Job) -> dict[str, Any]:
    r"""Returns the accuracies of validation and test after the last epoch, the seconds, and the parameters."""
    path = data_folder('roads') / FILE
    data = eccentricity_on_roads(path)
    data.edge_attr = attributes(path, data.edge_index)
    place = torch.randperm(data.num_nodes, generator=torch.Generator().manual_seed(job.seed)) / data.num_nodes
    parts = {'val': (place >= 0.1) & (place < 0.2), 'test': place >= 0.2}
    torch.manual_seed(job.seed)
    make, layers = NETWORKS[job.model]
    network, known = Network(make, layers, data), place < 0.1
    epochs = 1 if job.quick else EPOCHS
    seconds = fit(network, [data], epochs, RATE, lambda out, y: cross_entropy(out[known], y[known]))
    network.eval()
    with torch.no_grad():
        right = network(data).argmax(1) == data.y
    scores = {f'{part}_score': float(right[mask].double().mean()) for part, mask in parts.items()}
    return {**scores, 'seconds': seconds, 'parameters': count_parameters(network)}


def run(quick: bool, folder: Path) -> None:
    names = list(NETWORKS)[: 2 if quick else None]
    jobs = [Job(name, seed, quick) for seed in range(1 if quick else SEEDS) for name in names]
    results = run_all(jobs, train, [EPOCHS, RATE, LAYERS, DEEP], kept_runs(folder, 'edge_roads', quick))
    runs = {name: {job.seed: result for job, result in results.items() if job.model == name} for name in names}
    note = (
        'Deciles of the largest distance along roads within 16 edges, as in "Towards Quantifying Long-Range Interactions in '
        'Graph Machine Learning" (arXiv:2503.09008), on the road network of the region of Chicago: 12,982 intersections, of '
        'which a seed draws 10 % each for training and validation, and 80 % for test. Features of a road are the logarithms of '
        'its length and speed, and those of an intersection are its degree and means over its roads. '
        f'Masks have {LAYERS} layers whose kernels reach 4 edges or more, GINE and GatedGCN alone have {DEEP}. All have '
        f'{WIDTH} channels and the same network around their layers. Learned weights read the road and both ends, and start at '
        f'1. Accuracy after {EPOCHS} epochs at a rate of at most {RATE}, which were set before the '
        'run. Seconds are those of a processor in training, on one thread, beside other work.'
    )
    pairs = {name: f'{name}, learned weights' for name in names if f'{name}, learned weights' in names}
    rows = table_of_models(runs, list(pairs.values()), 'accuracy', True)
    write_table('edge_roads', 'Roads with lengths and speeds', note, rows, folder)
    gained = table_of_gains(runs, pairs, 'accuracy', True)
    write_table('edge_roads_gains', 'What learned edge weights gain on roads', note, gained, folder)
