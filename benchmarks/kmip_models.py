r"""The models that k-MIP attention is compared with, and their training."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import Linear, Module, ModuleList, Sequential
from torch.optim import AdamW, Optimizer
from torch.optim.lr_scheduler import LRScheduler, OneCycleLR
from torch_geometric.data import Batch, Data
from torch_geometric.loader import DataLoader
from torch_geometric.nn import GATConv, GCNConv, GINEConv, MessagePassing, global_mean_pool

from benchmarks.harness import compare, count_parameters, each, interleaved_medians, kept_runs, nearest_width, run_all, show
from pyg_topomask.apps.train.module import cosine_with_warmup
from pyg_topomask.graphs.graph import Graph
from pyg_topomask.masks import BigBirdMask, ExpanderMask
from pyg_topomask.nn import (
    GatedGCNConv,
    GRFAttention,
    KMIPAttention,
    MaskedLinearAttention,
    MaskedSoftmaxAttention,
    TopoGPSConv,
)

__all__ = [
    'ATTENTIONS',
    'CONVOLUTIONS',
    'EQUAL_SIZE',
    'REFERENCE',
    'Job',
    'LinearEncoder',
    'Result',
    'Task',
    'Training',
    'accuracy',
    'compare_all',
    'describe',
    'make_model',
    'time_steps',
    'train_all',
]

HEADS, DROPOUT, REFERENCE = 4, 0.1, 'GPS + k-MIP'


def _mlp(channels: int) -> Module:
    return Sequential(Linear(channels, channels), torch.nn.ReLU(), Linear(channels, channels))


#: Called with the channels.
CONVOLUTIONS: dict[str, Callable[[int], MessagePassing]] = {
    'GCN': lambda channels: GCNConv(channels, channels),
    'GINE': lambda channels: GINEConv(_mlp(channels), edge_dim=channels),
    'GAT': lambda channels: GATConv(channels, channels // HEADS, HEADS),
    'GatedGCN': lambda channels: GatedGCNConv(channels, DROPOUT),
}
#: What stands beside the local GatedGCN: arguments of the GPS layer.
ATTENTIONS: dict[str, Callable[[int], dict[str, Any]]] = {
    'GPS + Transformer': lambda _: {'attn_type': 'multihead', 'heads': HEADS},
    # Heads of PyG's default of 64 channels would take ten times as long as all else.
    'GPS + Performer': lambda channels: {
        'attn_type': 'performer',
        'heads': HEADS,
        'attn_kwargs': {'head_channels': channels // HEADS},
    },
    'GPS + linear': lambda channels: {'attn': MaskedLinearAttention(channels, HEADS)},
    'GPS + GRF': lambda channels: {'attn': GRFAttention(channels, HEADS)},
    'GPS + BigBird': lambda channels: {'attn': MaskedSoftmaxAttention(channels, HEADS, BigBirdMask())},
    'GPS + expander': lambda channels: {'attn': MaskedSoftmaxAttention(channels, HEADS, ExpanderMask())},
    REFERENCE: lambda channels: {'attn': KMIPAttention(channels, HEADS, k=10)},
}
#: The channels that models other than k-MIP may have.
WIDTHS = range(4 * HEADS, 200, HEADS)
#: What the note below a comparison says of them.
EQUAL_SIZE = (
    f'k = 10. The other models have the number of channels, a multiple of {HEADS}, with which their number of parameters is '
    f'closest to that of k-MIP.'
)


class Job(NamedTuple):
    r"""One model to train: its name, and what is asked of k-MIP attention."""

    model: str
    k: int = 10
    kq_dim: int = 8
    seed: int = 0


class Result(NamedTuple):
    r"""What a training gives."""

    score: float
    parameters: int
    channels: int


@dataclass(frozen=True)
class Task:
    r"""What models learn.

    Args:
        load (callable): Called with :obj:`"train"` or :obj:`"test"`, returns graphs.
        nodes (callable): Makes the module that maps a batch to its node features, of the channels.
        edges (callable): Makes the module that maps a batch to its edge features, of the channels.
        outputs (int): The number of outputs for each graph.
        loss (callable): The loss of outputs and targets.
        score (callable): What is reported of outputs and targets.
    """

    load: Callable[[str], list[Data]]
    nodes: Callable[[int], Module]
    edges: Callable[[int], Module]
    outputs: int
    loss: Callable[[Tensor, Tensor], Tensor]
    score: Callable[[Tensor, Tensor], float]


@dataclass(frozen=True)
class Training:
    r"""Graphs for training and for testing, epochs, seeds, and what the thesis calls hyperparameters.

    The channels and the size of keys and queries are those of k-MIP. After a warm-up of some epochs, the learning rate falls
    along a cosine. Without a warm-up, it follows a one-cycle schedule.
    """

    train: int
    test: int
    epochs: int
    seeds: int
    layers: int = 3
    channels: int = 32
    kq_dim: int = 8
    batch: int = 32
    rate: float = 3e-3
    weight_decay: float = 0.01
    warmup: int = 0


class LinearEncoder(Module):
    r"""A linear map of an attribute of a batch.

    Args:
        name (str): The attribute.
        size (int): Its size.
        channels (int): The size of what it is mapped to.
    """

    def __init__(self, name: str, size: int, channels: int) -> None:
        super().__init__()
        self.name = name
        self.lin = Linear(size, channels)

    def forward(self, data: Batch) -> Tensor:
        out: Tensor = self.lin(data[self.name])
        return out


def accuracy(output: Tensor, target: Tensor) -> float:
    r"""Returns the share of targets whose output is the largest."""
    return float((output.argmax(1) == target).double().mean())


class GraphModel(Module):
    r"""Layers of one kind between encoders and the mean over nodes."""

    def __init__(self, job: Job, task: Task, layers: int, channels: int) -> None:
        super().__init__()
        self.channels = channels
        self.nodes = task.nodes(channels)
        self.layers = ModuleList(_layer(job, channels) for _ in range(layers))
        self.edges = None if job.model in ('GCN', 'GAT') else task.edges(channels)
        self.lin_out = Sequential(Linear(channels, channels), torch.nn.ReLU(), Linear(channels, task.outputs))

    def forward(self, data: Batch) -> Tensor:
        graph, x = Graph.from_data(data), self.nodes(data)
        local = {} if self.edges is None else {'edge_attr': self.edges(data)}
        for layer in self.layers:
            x = layer(x, data.edge_index, data.batch, graph=graph, **local)
            if isinstance(x, tuple):  # of a GatedGCN
                x, local['edge_attr'] = x
        out: Tensor = self.lin_out(global_mean_pool(x, data.batch, data.num_graphs))
        return out


def _layer(job: Job, channels: int) -> TopoGPSConv:
    if job.model in CONVOLUTIONS:
        return TopoGPSConv(channels, CONVOLUTIONS[job.model](channels), dropout=DROPOUT, attn_type=None)
    if job.model == REFERENCE:
        attention: dict[str, Any] = {'attn': KMIPAttention(channels, HEADS, job.k, kq_dim=job.kq_dim)}
    else:
        attention = ATTENTIONS[job.model](channels)
    return TopoGPSConv(channels, CONVOLUTIONS['GatedGCN'](channels), dropout=DROPOUT, **attention)


def make_model(job: Job, task: Task, training: Training) -> GraphModel:
    r"""Makes a model: k-MIP with the channels of the training, others with those that come closest to its parameters."""
    make = partial(GraphModel, job, task, training.layers)
    if job.model == REFERENCE:
        return make(training.channels)
    budget = count_parameters(GraphModel(job._replace(model=REFERENCE), task, training.layers, training.channels))
    return make(nearest_width(make, budget, WIDTHS))


def train_all(jobs: list[Job], task: Task, training: Training, settings: object, path: Path) -> dict[Job, Result]:
    r"""Trains models in parallel, see :func:`~benchmarks.harness.run_all`.

    Args:
        jobs (list of Jobs): The models.
        task (Task): What they learn.
        training (Training): How much of it.
        settings (object): What the task depends on.
        path (Path): Where results are kept.
    """
    runs = run_all(jobs, partial(_train, task=task, training=training), [settings, asdict(training)], path)
    return {job: Result(*result) for job, result in runs.items()}


def _train(job: Job, task: Task, training: Training) -> Result:
    torch.manual_seed(job.seed)
    graphs = {split: task.load(split)[: getattr(training, split)] for split in ('train', 'test')}
    model = make_model(job, task, training)
    optimizer = AdamW(model.parameters(), training.rate, weight_decay=training.weight_decay)
    loader = DataLoader(graphs['train'], training.batch, shuffle=True)
    scheduler = _schedule(optimizer, training, len(loader))
    for _ in range(training.epochs):
        for batch in loader:
            _step(model, task, optimizer, batch)
            scheduler.step()
    return Result(_score(model.eval(), task, graphs['test']), count_parameters(model), model.channels)


def _schedule(optimizer: Optimizer, training: Training, steps: int) -> LRScheduler:
    if training.warmup:
        return cosine_with_warmup(optimizer, training.warmup * steps, training.epochs * steps)
    return OneCycleLR(optimizer, training.rate, total_steps=training.epochs * steps)


def _step(model: GraphModel, task: Task, optimizer: Optimizer, batch: Batch) -> None:
    optimizer.zero_grad()
    task.loss(model(batch), batch.y).backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()


def time_steps(jobs: Iterable[Job], task: Task, training: Training, repeats: int) -> dict[Job, float]:
    r"""Returns the median milliseconds of a training step of each model, on one batch and one thread.

    Args:
        jobs (iterable of Jobs): The models.
        task (Task): What they learn.
        training (Training): Sizes of the models and of the batch.
        repeats (int): How often each is called, in turns.
    """
    torch.set_num_threads(1)
    batch = next(iter(DataLoader(task.load('train'), training.batch)))
    models = {job: make_model(job, task, training) for job in jobs}
    steps = {str(job): partial(_step, model, task, AdamW(model.parameters()), batch.clone()) for job, model in models.items()}
    medians = interleaved_medians(steps, repeats)
    return {job: 1e3 * medians[str(job)] for job in models}


@torch.no_grad()
def _score(model: GraphModel, task: Task, graphs: list[Data]) -> float:
    outputs = [(model(batch), batch.y) for batch in DataLoader(graphs, 256)]
    return task.score(*(torch.cat(tensors) for tensors in zip(*outputs, strict=True)))


def compare_all(
    name: str,
    task: Task,
    training: Training,
    settings: object,
    metric: str,
    thesis: dict[str, float],
    quick: bool,
    folder: Path,
    models: Sequence[str] = (*CONVOLUTIONS, *ATTENTIONS),
) -> list[dict[str, object]]:
    r"""Trains models, and returns a row of each, beside k-MIP of the same seeds.

    Args:
        name (str): The name of the table.
        task (Task): What they learn.
        training (Training): How much of it.
        settings (object): What the task depends on.
        metric (str): What the score is called.
        thesis (dict): What the thesis has, in %.
        quick (bool): Whether this is a smoke run.
        folder (Path): Where results are kept.
        models (list of strs): Their names, k-MIP among them. (default: all)
    """
    jobs = [Job(model, kq_dim=training.kq_dim, seed=seed) for seed in range(training.seeds) for model in models]
    runs = train_all(jobs, task, training, settings, kept_runs(folder, name, quick))
    steps = time_steps([job for job in jobs if job.seed == 0], task, training, 3 if quick else 15)
    rows: list[dict[str, object]] = []
    for model in models:
        trained = {job: result for job, result in runs.items() if job.model == model}
        scores = [result.score for result in trained.values()]
        baseline = [runs[job._replace(model=REFERENCE)].score for job in trained]
        first = next(iter(trained.values()))
        rows.append(
            {
                'model': model,
                'channels': first.channels,
                'parameters': first.parameters,
                metric: show(scores, 4),
                **compare(scores, baseline, 'minus k-MIP, paired', model == REFERENCE, 4),
                'step, ms': steps[next(iter(trained))],
                'thesis': thesis.get(model, ''),
                'seeds': each(scores, 4),
            }
        )
    return rows


def describe(training: Training, metric: str) -> str:
    r"""Describes models and training for a note below a title."""
    schedule = f'warm-up of {training.warmup} epochs, then a cosine' if training.warmup else 'one-cycle schedule'
    return (
        f'{training.train} graphs for training and {training.test} for testing, {training.epochs} epochs, batches of '
        f'{training.batch}, AdamW, learning rate up to {training.rate} ({schedule}), weight decay {training.weight_decay}, '
        f'{training.seeds} seeds (weights and batches), {metric} after the last epoch, mean ± standard error. A difference '
        f'below two standard errors is "not distinguishable". All models have {training.layers} layers, {HEADS} heads, '
        f'dropout {DROPOUT} and a mean over nodes, and k-MIP has {training.channels} channels and keys of size '
        f'{training.kq_dim}. The local layer of GPS is GatedGCN. It uses the edge features, and so does GINE. The milliseconds '
        f'of a training step are medians on one batch and one thread, with the models in turns.'
    )
