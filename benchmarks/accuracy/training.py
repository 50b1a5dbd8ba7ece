r"""Trains one model on one split, and keeps the epoch that is best on the nodes of validation."""

from __future__ import annotations

import time
import warnings
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.utils import to_torch_csr_tensor

from benchmarks.accuracy.networks import Example, Network, Setting
from benchmarks.accuracy.tasks import TASKS, Metric
from benchmarks.harness import count_parameters
from pyg_topomask.graph import Graph

__all__ = ['Run', 'train']


class Run(NamedTuple):
    r"""What a training gives: the metric at the best epoch, the seconds of all epochs without their evaluation."""

    validation: float
    test: float
    epoch: int
    seconds: float
    parameters: int


def _example(data: Data) -> Example:
    graph = Graph.from_data(data)
    with warnings.catch_warnings():
        warnings.filterwarnings('ignore', 'Sparse', UserWarning)  # CSR tensors are in beta
        adj = to_torch_csr_tensor(data.edge_index.flip(0), size=(data.num_nodes, data.num_nodes))
    return Example(data.x, adj, graph)


def _score(model: Network, examples: list[Example], graphs: list[list[Data]], metric: Metric) -> list[float]:
    model.eval()
    scores = []
    outputs: dict[int, Tensor] = {}
    with torch.no_grad():
        for part in graphs:
            pairs = []
            for data, example in part:
                if id(data.x) not in outputs:
                    outputs[id(data.x)] = model(example)
                pairs.append((outputs[id(data.x)][data.mask], data.y[data.mask]))
            scores.append(metric.compute(*(torch.cat(tensors) for tensors in zip(*pairs, strict=True))))
    return scores


def train(task_name: str, setting: Setting, split: int, log: Any = None) -> Run:
    r"""Trains a model."""
    task = TASKS[task_name]
    parts = task.load(split)
    shared: dict[int, Example] = {}
    pairs = [[(data, shared.setdefault(id(data.x), _example(data))) for data in part] for part in parts]
    torch.manual_seed(split)
    model = Network(setting, parts[0][0].x.size(1), task.outputs)
    optimizer = torch.optim.Adam(model.parameters(), setting.rate, weight_decay=setting.decay)
    steps = setting.epochs * len(pairs[0])
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, setting.rate, total_steps=steps, pct_start=0.1)
    best, seconds = Run(-1.0, -1.0, 0, 0.0, count_parameters(model)), 0.0
    for epoch in range(1, setting.epochs + 1):
        start = time.process_time()
        model.train()
        for data, example in pairs[0]:
            optimizer.zero_grad()
            task.metric.loss(model(example)[data.mask], data.y[data.mask]).backward()
            optimizer.step()
            scheduler.step()
        seconds += time.process_time() - start
        if epoch % max(1, setting.epochs // 20) == 0 or epoch == setting.epochs:
            validation, test = _score(model, [], pairs[1:], task.metric)
            if validation > best.validation:
                best = best._replace(validation=validation, test=test, epoch=epoch)
            if log is not None and epoch % max(1, setting.epochs // 10) == 0:
                log(f'{epoch} val {validation:.4f} test {test:.4f} best {best.validation:.4f}/{best.test:.4f} {seconds:.0f}s')
    return best._replace(seconds=seconds)
