r"""Trains one model on one split, and keeps the epoch that is best on the nodes of validation."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn.utils import clip_grad_norm_
from torch.optim import Optimizer
from torch.optim.lr_scheduler import ConstantLR, LRScheduler, OneCycleLR
from torch_geometric.data import Data
from torch_geometric.utils import to_torch_csr_tensor

from benchmarks.accuracy.encodings import encode_nodes
from benchmarks.accuracy.networks import Example, Network, Setting
from benchmarks.accuracy.tasks import TASKS, Metric
from benchmarks.harness import count_parameters
from pyg_topomask.graphs.graph import Graph
from pyg_topomask.masks import Mask

__all__ = ['Run', 'make_example', 'train']

#: Graphs with the nodes that count and their targets.
Part = list[tuple[Example, Tensor, Tensor]]


class Run(NamedTuple):
    r"""What a training gives: the metric at the best epoch, the seconds of all epochs without their evaluation."""

    validation: float
    test: float
    epoch: int
    seconds: float
    parameters: int


def make_example(data: Data, like: Example | None = None, encode: bool = False) -> Example:
    r"""Returns what a network reads of a graph, whose edges may be those of another example."""
    if like is not None:
        return like._replace(x=data.x)
    with warnings.catch_warnings():
        warnings.filterwarnings('ignore', 'Sparse', UserWarning)  # CSR tensors are in beta
        adj = to_torch_csr_tensor(data.edge_index.flip(0), size=(data.num_nodes, data.num_nodes))
    return Example(data.x, adj, Graph.from_data(data), encode_nodes(data) if encode else None)


def train(name: str, setting: Setting, split: int) -> Run:
    r"""Trains a model on a split, whose number is also the seed. With a one-cycle learning rate it is evaluated as often as the
    task says, and after the last epoch. With a constant rate, it is evaluated every second epoch, because scores then vary from
    epoch to epoch until the end.

    Args:
        name (str): The name of the task.
        setting (Setting): The model and its training.
        split (int): The number of the split.
    """
    task = TASKS[name]
    examples: dict[int, Example] = {}  # by features: splits may share a graph
    prepared: dict[int, Example] = {}  # by edges
    parts, encode = [], setting.variant == 'gps'
    for graphs in task.load(split):
        for data in graphs:
            if id(data.x) not in examples:
                examples[id(data.x)] = make_example(data, prepared.get(id(data.edge_index)), encode)
                prepared.setdefault(id(data.edge_index), examples[id(data.x)])
        parts.append([(examples[id(data.x)], data.mask, data.y[data.mask]) for data in graphs])
    (first, _, _), *_ = training = parts[0]
    torch.manual_seed(split)
    model = Network(setting, first.x.size(1), task.outputs, task.graphs)
    optimizer = torch.optim.Adam(_groups(model, setting), setting.rate, weight_decay=setting.decay)
    scheduler = _schedule(optimizer, setting, setting.epochs * len(training))
    every = 2 if setting.schedule == 'constant' else max(1, setting.epochs // task.evaluations)
    best, seconds = Run(-math.inf, -math.inf, 0, 0.0, count_parameters(model)), 0.0
    for epoch in range(1, setting.epochs + 1):
        start = time.process_time()
        model.train()
        for example, mask, target in training:
            optimizer.zero_grad()
            task.metric.loss(model(example)[mask], target).backward()
            if setting.variant == 'clipped':
                clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            scheduler.step()
        seconds += time.process_time() - start
        if epoch % every == 0 or epoch == setting.epochs:
            validation, test = _score(model.eval(), parts[1:], task.metric)
            if validation > best.validation:
                best = best._replace(validation=validation, test=test, epoch=epoch)
    return best._replace(seconds=seconds)


def _groups(model: Network, setting: Setting) -> list[dict[str, Any]]:
    r"""Returns the parameters for the optimizer, those of masks with a learning rate of their variant."""
    of_masks = [each for module in model.modules() if isinstance(module, Mask) for each in module.parameters()]
    ids = set(map(id, of_masks))
    factor = {'fast mask': 10.0, 'slow mask': 0.1}.get(setting.variant, 1.0)
    rest = [each for each in model.parameters() if id(each) not in ids]
    return [{'params': group, 'lr': setting.rate * scale} for group, scale in ((rest, 1.0), (of_masks, factor)) if group]


def _schedule(optimizer: Optimizer, setting: Setting, steps: int) -> LRScheduler:
    if setting.schedule == 'constant':
        return ConstantLR(optimizer, 1.0)
    return OneCycleLR(optimizer, [group['lr'] for group in optimizer.param_groups], total_steps=steps, pct_start=0.1)


@torch.no_grad()
def _score(model: Network, parts: Sequence[Part], metric: Metric) -> list[float]:
    outputs = {id(example): model(example) for part in parts for example, _, _ in part}
    scores = []
    for part in parts:
        output = torch.cat([outputs[id(example)][mask] for example, mask, _ in part])
        scores.append(metric.compute(output, torch.cat([target for _, _, target in part])))
    return scores
