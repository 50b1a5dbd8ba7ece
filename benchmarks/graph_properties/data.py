r"""The graphs of the benchmark, and larger ones."""

from __future__ import annotations

import numpy as np
import torch
from torch_geometric.data import Data
from torch_geometric.transforms import AddRandomWalkPE

from benchmarks.harness import data_folder
from pyg_topomask.apps.datasets.graph_properties import GraphProperties

__all__ = ['LARGER', 'STEPS', 'TASKS', 'larger_graphs', 'load_graphs']

#: The labels by the name of the property in the data set of the package.
TASKS = {'distances': 'sssp', 'eccentricity': 'ecc', 'diameter': 'diam'}
#: The steps of the walks whose return probabilities are the encodings.
STEPS = 16
#: The numbers of nodes of the graphs of one size for which the models are not trained; the first are those of training.
LARGER = ((25, 34), (50, 60), (75, 100))


def load_graphs(part: str, task: str, most: int | None = None) -> list[Data]:
    r"""Returns the graphs of a part, or the first of them, with encodings.

    Args:
        part (str): :obj:`"train"`, :obj:`"val"` or :obj:`"test"`.
        task (str): A key of :obj:`TASKS`.
        most (int, optional): How many graphs at most. (default: :obj:`None`, all)
    """
    stored = np.load(data_folder('graphprop') / 'graphprop.npz')
    sizes, counts = (stored[f'{part}_num_{name}'].astype(np.int64)[:most] for name in ('nodes', 'edges'))
    nodes, edges = (np.concatenate([[0], each.cumsum()]) for each in (sizes, counts))
    edge_index, values = (stored[f'{part}_{name}'] for name in ('edge_index', 'x'))
    y, sources = stored[f'{part}_{TASKS[task]}'], stored[f'{part}_source']
    graphs = []
    for index, size in enumerate(sizes):
        own = slice(nodes[index], nodes[index + 1])
        x = np.stack([np.arange(size) == sources[index], values[own]], axis=1)
        pairs = edge_index[:, edges[index] : edges[index + 1]].astype(np.int64)
        label = y[index : index + 1] if task == 'diameter' else y[own]
        graphs.append(_graph(x, pairs, label))
    return _encoded(graphs)


def larger_graphs(least: int, most: int, task: str) -> list[Data]:
    r"""Returns 200 graphs of other sizes, of the same families, from the generator of the package."""
    dataset = GraphProperties(property=task, num_graphs=200, least=least, most=most, seed=least)
    return _encoded([Data(x=data.x, edge_index=data.edge_index, y=data.y.flatten()) for data in dataset])


def _graph(x: np.ndarray, pairs: np.ndarray, label: np.ndarray) -> Data:
    arrays = (torch.from_numpy(np.ascontiguousarray(each)) for each in (x, label))
    features, y = (each.float() for each in arrays)
    return Data(x=features, edge_index=torch.from_numpy(pairs), y=y)


def _encoded(graphs: list[Data]) -> list[Data]:
    return [AddRandomWalkPE(STEPS, attr_name='encoding')(data) for data in graphs]
