r"""TU sets: graphs, their features, and folds."""

from __future__ import annotations

import json
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from sklearn.model_selection import StratifiedKFold, train_test_split
from torch_geometric.data import Data
from torch_geometric.datasets import TUDataset
from torch_geometric.utils import degree, to_undirected

from benchmarks.harness import data_folder

__all__ = ['PACKED', 'Fold', 'load', 'split']

#: Sets that come as edge lists by differences of indices, without folds of Errica et al.
PACKED = ('DD', 'COLLAB', 'REDDIT-BINARY')


@dataclass(frozen=True)
class Fold:
    r"""Indices of graphs: those to train with, those that choose the epoch, and those to test with."""

    train: list[int]
    val: list[int]
    test: list[int]


def load(name: str, root: str) -> list[Data]:
    r"""Returns the graphs of a set below :obj:`root`, with node labels, attributes (ENZYMES) or degrees as features."""
    graphs = _unpack(name) if name in PACKED else list(TUDataset(f'{root}/tu', name, use_node_attr=name == 'ENZYMES'))
    for graph in graphs:
        if graph.x is None:
            graph.x = degree(graph.edge_index[0], graph.num_nodes).unsqueeze(1)
    return graphs


def split(name: str, graphs: list[Data], fold: int) -> Fold:
    r"""Returns a fold of Errica et al., or where there is none a stratified one of ten, with a tenth for validation."""
    if name not in PACKED:
        splits = json.loads((data_folder('tu_splits') / f'{name}_splits.json').read_text())[fold]
        inner = splits['model_selection'][0]
        return Fold(inner['train'], inner['validation'], splits['test'])
    label = np.array([int(graph.y) for graph in graphs])
    rest, test = list(StratifiedKFold(10, shuffle=True, random_state=0).split(label, label))[fold]
    train, val = train_test_split(rest, test_size=0.1, stratify=label[rest], random_state=fold)
    return Fold(train.tolist(), val.tolist(), test.tolist())


def _unpack(name: str) -> list[Data]:
    with np.load(data_folder('tu_packed') / f'{name}.npz') as packed:
        size, above, gap = (torch.from_numpy(packed[key].astype(np.int64)) for key in ('n', 'deg', 'gap'))
        label = torch.from_numpy(packed['y'].astype(np.int64))
        kind = torch.from_numpy(packed['node_label'].astype(np.int64)) if 'node_label' in packed else None
    # The neighbors above a node ascend, each given by its distance from the one before, the first by that from the node.
    total = F.pad(gap.cumsum(0), (1, 0))
    node = torch.arange(above.numel()).repeat_interleave(above)
    neighbor = node + total[1:] - total[above.cumsum(0) - above].repeat_interleave(above)
    edges = torch.stack([node, neighbor]).split([int(degrees.sum()) for degrees in above.split(size.tolist())], dim=1)
    graphs, start = [], 0
    for number, index, target in zip(size.tolist(), edges, label.split(1), strict=True):
        graphs.append(Data(edge_index=to_undirected(index - start, num_nodes=number), y=target, num_nodes=number))
        start += number
    if kind is not None:
        for graph, features in zip(
            graphs, F.one_hot(kind.unique(return_inverse=True)[1]).float().split(size.tolist()), strict=True
        ):
            graph.x = features
    return graphs
