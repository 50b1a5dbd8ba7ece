r"""Trains one model for one task, and keeps the epoch that is best in validation."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.optim.lr_scheduler import OneCycleLR
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader
from torch_geometric.utils import scatter

from benchmarks.harness import count_parameters, nearest_width
from benchmarks.long_range.networks import MODELS, Network
from benchmarks.long_range.tasks import TASKS, Task
from pyg_topomask.transforms import PrepareMasks

__all__ = ['Job', 'train']

PARAMETERS = 34_000
WARMUP, DECAY = 0.1, 1e-6


class Job(NamedTuple):
    r"""A task, a model, a learning rate, the number of epochs and a seed. A smoke run has few graphs."""

    task: str
    model: str
    rate: float
    epochs: int
    seed: int
    graphs: int | None = None


def train(job: Job) -> dict[str, Any]:
    r"""Returns the mean errors of the best epoch, those of graphs of each other size, the seconds, and the parameters."""
    model, task = MODELS[job.model], TASKS[job.task]
    width = nearest_width(lambda width: Network(model, width, task), PARAMETERS, range(8, 129, model.step))
    torch.manual_seed(job.seed)
    network = Network(model, width, task)
    parts = {part: _prepared(network, task.graphs_of(part, job.graphs)) for part in ('train', 'val', 'test')}
    generator = torch.Generator().manual_seed(job.seed)
    loader = DataLoader(parts['train'], task.batch, shuffle=True, generator=generator)
    optimizer = torch.optim.Adam(network.parameters(), job.rate, weight_decay=DECAY)
    scheduler = OneCycleLR(optimizer, job.rate, total_steps=job.epochs * len(loader), pct_start=WARMUP)
    best, state, seconds = math.inf, network.state_dict(), 0.0
    for epoch in range(1, job.epochs + 1):
        start = time.process_time()
        for data in loader:
            optimizer.zero_grad()
            _errors(network(data), data, task).mean().backward()
            optimizer.step()
            scheduler.step()
        seconds += time.process_time() - start
        if epoch % 2 and epoch < job.epochs:
            continue
        if (error := score(network, parts['val'], task)) < best:
            best, state = error, {name: value.clone() for name, value in network.state_dict().items()}
    network.load_state_dict(state)
    return {
        'validation': best,
        'test': score(network, parts['test'], task),
        'larger': [score(network, _prepared(network, task.graphs_of(size)), task) for size in task.larger],
        'seconds': seconds,
        'parameters': count_parameters(network),
        'width': width,
    }


def _prepared(network: Network, graphs: list[Data]) -> list[Data]:
    r"""Stores the distances that a mask prepares, as the runner does."""
    try:
        return PrepareMasks(network).forward_many(graphs)
    except ValueError:  # no mask stores anything
        return graphs


@torch.no_grad()
def score(network: Network, graphs: Sequence[Data], task: Task) -> float:
    r"""Returns the mean error, averaged over the nodes of a graph, then over graphs."""
    network.eval()
    errors = torch.cat([_errors(network(data), data, task) for data in DataLoader(graphs, 2 * task.batch)])
    network.train()
    return float(errors.double().mean())


def _errors(output: Tensor, data: Data, task: Task) -> Tensor:
    r"""Returns the mean error of each graph."""
    errors = task.error(output - data.y)
    return errors if task.graphs else scatter(errors, data.batch, 0, reduce='mean')
