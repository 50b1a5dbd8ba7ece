r"""Models of molecules whose bonds have kinds, and their training."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import torch
from sklearn.metrics import average_precision_score, mean_absolute_error, roc_auc_score, root_mean_squared_error
from torch import Tensor
from torch.nn import BatchNorm1d, Linear, Module, ReLU, Sequential
from torch.nn.functional import binary_cross_entropy_with_logits, l1_loss, mse_loss
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader
from torch_geometric.nn import global_add_pool

from benchmarks.edge_types import HEADS, WIDTH, Job, Stack, Weighted, fit, gine
from benchmarks.harness import count_parameters
from benchmarks.molecules import molecules_of_moleculenet, molecules_of_peptides, molecules_of_zinc
from pyg_topomask.graphs.graph import Graph
from pyg_topomask.masks import GRFMask, HeatKernelMask, HopMask, Mask, PowerSeriesMask
from pyg_topomask.nn import EdgeWeights, MaskedLinearAttention, MaskedSoftmaxAttention, TopoGPSConv
from pyg_topomask.nn.local_layers import GatedGCNConv

__all__ = ['DEPTH', 'LARGE_TASKS', 'MODELS', 'RATE', 'TASKS', 'Job', 'Task', 'masked', 'train']

DEPTH, RATE = 3, 3e-3
PARTS = ('train', 'val', 'test')


class Task(NamedTuple):
    r"""What returns the molecules of training, validation and test for a seed, the loss, the metric of targets and outputs, the
    epochs, and the molecules of a batch. Numbers are standardized for the loss, and not for the metric.
    """

    load: Callable[[int], tuple[list[Data], ...]]
    loss: Callable[[Tensor, Tensor], Tensor]
    metric: str
    score: Callable[..., float]
    epochs: int
    batch: int = 64
    maximize: bool = False


def _drawn(molecules: list[Data], seed: int) -> tuple[list[Data], ...]:
    r"""Returns 80, 10 and 10 percent of molecules."""
    order = torch.randperm(len(molecules), generator=torch.Generator().manual_seed(seed)).tolist()
    ends = [0, len(order) * 8 // 10, len(order) * 9 // 10, len(order)]
    return tuple([molecules[place] for place in order[ends[part] : ends[part + 1]]] for part in range(3))


def _of_moleculenet(file: str, smiles: str, target: str) -> Callable[[int], tuple[list[Data], ...]]:
    return lambda seed: _drawn(molecules_of_moleculenet(file, smiles, target), seed)


ESOL = _of_moleculenet('esol/raw/delaney-processed.csv', 'smiles', 'measured log solubility in mols per litre')
LIPO = _of_moleculenet('lipo/raw/Lipophilicity.csv', 'smiles', 'exp')
BACE = _of_moleculenet('bace/raw/bace.csv.gz', 'mol', 'Class')
ENTROPY = binary_cross_entropy_with_logits
TASKS = {
    'ZINC': Task(lambda seed: _drawn(molecules_of_zinc(), seed), l1_loss, 'MAE', mean_absolute_error, 20),
    'ESOL': Task(ESOL, mse_loss, 'RMSE', root_mean_squared_error, 30),
    'BACE': Task(BACE, ENTROPY, 'ROC AUC', roc_auc_score, 20, maximize=True),
    'Lipophilicity': Task(LIPO, mse_loss, 'RMSE', root_mean_squared_error, 12),
}


#: Tasks that take longer.
LARGE_TASKS = {
    'Peptides-func': Task(
        lambda seed: molecules_of_peptides(), ENTROPY, 'AP', partial(average_precision_score, average='macro'), 5, maximize=True
    ),
}


def _weights(learned: bool) -> EdgeWeights | None:
    r"""Returns weights that are 1 at first. All other parameters of a model start as those of the model without weights."""
    with torch.random.fork_rng(devices=[]):
        return EdgeWeights(WIDTH, WIDTH, symmetric=True) if learned else None


def masked(mask: Callable[[], Mask], learned: bool) -> Callable[[], Module]:
    r"""Returns what makes a layer of linear attention under a mask, whose edge weights may be learned."""
    return lambda: Weighted(mask(), _weights(learned))


class Softmax(Module):
    r"""Softmax attention under a mask, whose logits and values may read edge features."""

    def __init__(self, reads_edges: bool) -> None:
        super().__init__()
        self.attention = MaskedSoftmaxAttention(WIDTH, HEADS, HopMask(HEADS, max_hops=4, positive=True))
        self.reads_edges = reads_edges
        if reads_edges:  # all other parameters start as those of the layer without
            alone = self.attention
            with torch.random.fork_rng(devices=[]):
                self.attention = MaskedSoftmaxAttention(WIDTH, HEADS, alone.mask, edge_dim=WIDTH)
            self.attention.load_state_dict(alone.state_dict(), strict=False)

    def forward(self, x: Tensor, edge_index: Tensor, edge_attr: Tensor, graph: Graph) -> Tensor:
        out: Tensor = self.attention(x, graph=graph, edge_attr=edge_attr if self.reads_edges else None)
        return out


def _gps(mask: Mask | None, learned: bool = False) -> TopoGPSConv:
    r"""Returns a GPS layer of GINE and attention, softmax attention without a mask."""
    if mask is None:
        return TopoGPSConv(WIDTH, gine(), HEADS)
    attention = MaskedLinearAttention(WIDTH, HEADS, mask)
    return TopoGPSConv(WIDTH, gine(), attn=attention, edge_weights=_weights(learned))


def _series() -> Mask:
    return PowerSeriesMask(HEADS)


#: What makes a layer of each model.
MODELS: dict[str, Callable[[], Module]] = {
    'PowerSeries': masked(_series, False),
    'PowerSeries, learned weights': masked(_series, True),
    'HeatKernel': masked(lambda: HeatKernelMask(HEADS), False),
    'HeatKernel, learned weights': masked(lambda: HeatKernelMask(HEADS), True),
    'GRF': masked(lambda: GRFMask(HEADS), False),
    'GRF, learned weights': masked(lambda: GRFMask(HEADS), True),
    'Hop with softmax': lambda: Softmax(False),
    'Hop with softmax, edge features': lambda: Softmax(True),
    'GINE': gine,
    'GatedGCN': lambda: GatedGCNConv(WIDTH),
    'GPS: GINE and softmax attention': lambda: _gps(None),
    'GPS: GINE and PowerSeries': lambda: _gps(_series()),
    'GPS: GINE and PowerSeries, learned weights': lambda: _gps(_series(), learned=True),
}


class Network(Module):
    r"""Numbers of a molecule from layers of a model and the sum over its atoms."""

    def __init__(self, make: Callable[[], Module], example: Data) -> None:
        super().__init__()
        self.lin_x, self.lin_edge = Linear(example.x.size(1), WIDTH), Linear(example.edge_attr.size(1), WIDTH)
        self.stack = Stack(make() for _ in range(DEPTH))
        self.lin_out = Sequential(BatchNorm1d(WIDTH), Linear(WIDTH, WIDTH), ReLU(), Linear(WIDTH, example.y.size(1)))

    def forward(self, data: Data) -> Tensor:
        x = self.stack(self.lin_x(data.x), self.lin_edge(data.edge_attr), Graph.from_data(data))
        out: Tensor = self.lin_out(global_add_pool(x, data.batch, data.num_graphs))
        return out


def train(job: Job) -> dict[str, Any]:
    r"""Returns the metrics of validation and test after the last epoch, the seconds, and the parameters."""
    task = (TASKS | LARGE_TASKS)[job.task]
    graphs = {part: data[: 40 if job.quick else None] for part, data in zip(PARTS, task.load(job.seed), strict=True)}
    target = torch.cat([data.y for data in graphs['train']])
    shift, scale = (0.0, 1.0) if task.maximize else (target.mean(), target.std())
    torch.manual_seed(job.seed)
    network, epochs = Network(MODELS[job.model], graphs['train'][0]), 1 if job.quick else task.epochs
    loader = DataLoader(graphs['train'], task.batch, shuffle=True, generator=torch.Generator().manual_seed(job.seed))
    seconds = fit(network, loader, epochs, RATE, lambda out, y: task.loss(out, (y - shift) / scale))
    network.eval()
    scores = {}
    for part in ('val', 'test'):
        with torch.no_grad():
            output = torch.cat([network(data) for data in DataLoader(graphs[part], task.batch)]) * scale + shift
        scores[f'{part}_score'] = float(task.score(torch.cat([data.y for data in graphs[part]]).numpy(), output.numpy()))
    return {**scores, 'seconds': seconds, 'parameters': count_parameters(network)}
