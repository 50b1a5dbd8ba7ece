r"""Graphs of 25 to 34 nodes with the properties of the A-DGN paper, and larger ones."""

from __future__ import annotations

import numpy as np
import torch
from torch_geometric.data import Data

from benchmarks.harness import data_folder
from pyg_topomask.apps.datasets.random_graphs import GraphProperties

__all__ = ['larger_graphs', 'load_graphs']

#: The labels in the file by the name of the property in the data set of the package.
_LABELS = {'distances': 'sssp', 'eccentricity': 'ecc', 'diameter': 'diam'}


def load_graphs(property: str, part: str, most: int | None = None) -> list[Data]:
    r"""Returns the graphs of a part, or the first of them."""
    stored = np.load(data_folder('graphprop') / 'graphprop.npz')
    sizes, counts = (stored[f'{part}_num_{name}'].astype(np.int64)[:most] for name in ('nodes', 'edges'))
    nodes, edges = (np.concatenate([[0], each.cumsum()]) for each in (sizes, counts))
    edge_index, values = (stored[f'{part}_{name}'] for name in ('edge_index', 'x'))
    y, sources = stored[f'{part}_{_LABELS[property]}'], stored[f'{part}_source']
    graphs = []
    for index, size in enumerate(sizes):
        own = slice(nodes[index], nodes[index + 1])
        x = np.stack([np.arange(size) == sources[index], values[own]], axis=1)
        pairs = edge_index[:, edges[index] : edges[index + 1]].astype(np.int64)
        label = y[index : index + 1] if property == 'diameter' else y[own]
        features, target = (torch.from_numpy(np.ascontiguousarray(each)).float() for each in (x, label))
        graphs.append(Data(x=features, edge_index=torch.from_numpy(pairs), y=target))
    return graphs


def larger_graphs(least: int, most: int, property: str) -> list[Data]:
    r"""Returns 200 graphs of other sizes, of the same families, from the generator of the package."""
    dataset = GraphProperties(property=property, num_graphs=200, least=least, most=most, seed=least)
    return [Data(x=data.x, edge_index=data.edge_index, y=data.y.flatten()) for data in dataset]
