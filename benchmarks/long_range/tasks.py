r"""The tasks: their graphs, what is asked, and how errors are measured."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.transforms import AddRandomWalkPE

from benchmarks.long_range.families import load_families
from benchmarks.long_range.graph_properties import larger_graphs, load_graphs
from benchmarks.long_range.ising import load_spins

__all__ = ['STEPS', 'TASKS', 'Task']

#: The steps of the walks whose return probabilities are the encodings.
STEPS = 16


class Task(NamedTuple):
    r"""A task that asks for a number of each node or of each graph.

    Args:
        load (callable): Returns the graphs of a part, :obj:`"train"`, :obj:`"val"` or :obj:`"test"`, or the first of them.
        error (callable): The error of one answer, for training and for the table.
        graphs (bool): Whether each graph has one answer, and not each node.
        inputs (int): The number of features of a node.
        batch (int): The number of graphs in a batch.
        larger (dict): Graphs of other sizes, in words, which are for testing alone.
    """

    load: Callable[[str, int | None], list[Data]]
    error: Callable[[Tensor], Tensor]
    graphs: bool = False
    inputs: int = 2
    batch: int = 128
    larger: Mapping[str, Callable[[], list[Data]]] = {}

    def graphs_of(self, part: str, most: int | None = None) -> list[Data]:
        r"""Returns the graphs of a part, or of a size, with encodings."""
        graphs = self.larger[part]() if part in self.larger else self.load(part, most)
        return [AddRandomWalkPE(STEPS, attr_name='encoding')(data) for data in graphs]


def _property(name: str) -> Task:
    sizes = ((25, 34), (50, 60), (75, 100))
    larger = {f'{least} to {most} nodes': partial(larger_graphs, least, most, name) for least, most in sizes}
    return Task(partial(load_graphs, name), torch.square, name == 'diameter', larger=larger)


PROPERTIES = ('distances', 'eccentricity', 'diameter')
TASKS = {
    **{name: _property(name) for name in PROPERTIES},
    **{f'families {name}': Task(partial(load_families, name), torch.abs, name == 'diameter', batch=64) for name in PROPERTIES},
    'spins': Task(load_spins, torch.square, inputs=1, batch=8),
}
