r"""The tasks: graphs, targets, official or drawn splits, and the metric."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.utils import remove_self_loops, to_undirected
from torchmetrics.functional.classification import binary_auroc

from benchmarks.accuracy.generated import (
    distances_on_trees,
    distances_to_infected,
    lookup_on_trees,
    majority_on_trees,
    match_on_trees,
    transfer_on_rings,
)
from benchmarks.accuracy.interpolation import normals_of_meshes, speed_of_traffic
from benchmarks.accuracy.molecules import functions_of_peptides
from benchmarks.accuracy.roads import eccentricity_on_roads, volume_on_roads
from benchmarks.graphs import Splits
from benchmarks.harness import data_folder

__all__ = ['TASKS', 'Metric', 'Task']


def _auroc(output: Tensor, target: Tensor) -> float:
    return float(binary_auroc(output[:, 1] - output[:, 0], target))


def _accuracy(output: Tensor, target: Tensor) -> float:
    return float((output.argmax(1) == target).double().mean())


def _precision(output: Tensor, target: Tensor) -> float:
    from sklearn.metrics import average_precision_score

    return float(average_precision_score(target.numpy(), output.numpy(), average='macro'))


def _explained(output: Tensor, target: Tensor) -> float:
    return 1.0 - float((output - target).double().square().sum() / (target - target.mean(0)).double().square().sum())


@dataclass(frozen=True)
class Metric:
    r"""A number that is better if it is larger, 1 at best, and the loss of training."""

    name: str
    compute: Callable[[Tensor, Tensor], float]
    loss: Callable[[Tensor, Tensor], Tensor] = torch.nn.functional.cross_entropy


AUROC, ACCURACY = Metric('ROC AUC', _auroc), Metric('accuracy', _accuracy)
EXPLAINED = Metric('explained variance', _explained, torch.nn.functional.mse_loss)
PRECISION = Metric('average precision', _precision, torch.nn.functional.binary_cross_entropy_with_logits)


@dataclass(frozen=True)
class Task:
    r"""A task that asks for a class or numbers of nodes or of graphs.

    Args:
        load (callable): Returns the graphs of a split or of a seed.
        outputs (int): The number of classes, or of numbers.
        note (str): The task in one or two sentences, for the table.
        metric (Metric): What is reported, and what chooses epochs and settings on the nodes of validation.
        splits (int): How many splits or seeds there are. (default: :obj:`10`)
        evaluations (int): How many times a model is evaluated in training. (default: :obj:`20`)
        graphs (bool): Whether each graph has one answer, from the mean over its nodes. (default: :obj:`False`)
        needs (tuple): Libraries that the data need, with the extra of the package that has them. (default: none)
    """

    load: Callable[[int], Splits]
    outputs: int
    metric: Metric
    note: str = ''
    splits: int = 10
    evaluations: int = 20
    graphs: bool = False
    needs: tuple[tuple[str, str], ...] = ()


def _with_masks(data: Data, masks: tuple[Tensor, Tensor, Tensor]) -> Splits:
    train, val, test = ([Data(**{**data.to_dict(), 'mask': mask})] for mask in masks)
    return train, val, test


def _npz(path: Path, split: int) -> Splits:
    stored = np.load(path)
    edge_index = to_undirected(remove_self_loops(torch.from_numpy(stored['edges']).long().t())[0])
    data = Data(
        x=torch.from_numpy(stored['node_features']).float(),
        edge_index=edge_index,
        y=torch.from_numpy(stored['node_labels']).long(),
    )
    train, val, test = (torch.from_numpy(stored[f'{name}_masks'][split]).bool() for name in ('train', 'val', 'test'))
    return _with_masks(data, (train, val, test))


def _heterophilous(name: str) -> Callable[[int], Splits]:
    def load(split: int) -> Splits:
        folder = data_folder('heterophilous')
        path = folder / f'{name}.npz'
        return _npz(path if path.is_file() else folder / name / 'raw' / f'{name}.npz', split)

    return load


def _roads(city: str) -> Callable[[int], Splits]:
    def load(split: int) -> Splits:
        data = eccentricity_on_roads(data_folder('roads') / f'{city}.npz')
        order = torch.randperm(data.num_nodes, generator=torch.Generator().manual_seed(split))
        masks = [torch.zeros(data.num_nodes, dtype=torch.bool) for _ in range(3)]
        tenth = data.num_nodes // 10
        for mask, nodes in zip(masks, (order[:tenth], order[tenth : 2 * tenth], order[2 * tenth :]), strict=True):
            mask[nodes] = True
        return _with_masks(data, (masks[0], masks[1], masks[2]))

    return load


def _volume(seed: int) -> Splits:
    return volume_on_roads(data_folder('roads') / 'chicago_regional.npz', seed)


def _meshes(seed: int) -> Splits:
    folder = data_folder('pointcloud')
    return normals_of_meshes(folder / 'mesh_bunny.npz', folder / 'mesh_armadillo.npz', seed)


def _traffic(seed: int) -> Splits:
    return speed_of_traffic(data_folder('traffic') / 'los_loop.npz', seed)


def _peptides(molecules: int) -> Task:
    note = (
        'Peptides-func of the Long Range Graph Benchmark, ten functions of peptides of 151 atoms on average: '
        f'{molecules:,} molecules of the official training split, which has 10,873, and its validation and test split. Atoms '
        'have features, bonds do not.'
    )
    return Task(
        lambda seed: functions_of_peptides((molecules, 2_331, 2_331)),
        10,
        PRECISION,
        note,
        splits=5,
        evaluations=5,
        graphs=True,
        needs=(('rdkit', 'molecules'),),
    )


#: The tasks by name.
TASKS = {
    'minesweeper': Task(_heterophilous('minesweeper'), 2, AUROC, 'Minesweeper, the official splits.'),
    'tolokers': Task(_heterophilous('tolokers'), 2, AUROC, 'Tolokers, the official splits.'),
    'chameleon_filtered': Task(
        _heterophilous('chameleon_filtered'),
        5,
        ACCURACY,
        'Chameleon without duplicates, the official splits.',
        evaluations=200,
    ),
    'squirrel_filtered': Task(
        _heterophilous('squirrel_filtered'),
        5,
        ACCURACY,
        'Squirrel without duplicates, the official splits.',
        evaluations=200,
    ),
    'sydney': Task(
        _roads('sydney'),
        10,
        ACCURACY,
        'Deciles of the eccentricity within 16 edges on the road network of Sydney, 33,113 intersections, without coordinates; '
        '10 % of the intersections for training, 10 % for validation, 80 % for test. Features have the mean length '
        'of the roads of an intersection, edges have none.',
    ),
    'chicago': Task(
        _roads('chicago_regional'),
        10,
        ACCURACY,
        'Deciles of the eccentricity within 16 edges on the road network of the region of Chicago, 12,982 intersections, '
        'without coordinates; 10 % of the intersections for training, 10 % for validation, 80 % for test. Features have the '
        'mean length of the roads of an intersection, edges have none.',
    ),
    'volume': Task(
        _volume,
        1,
        EXPLAINED,
        'Logarithm of the volume of traffic at intersections of the region of Chicago, which counters at 10 % of them know, '
        'and another 10 % for validation; from the counters, the degree of an intersection and the means of its roads.',
    ),
    'trees': Task(
        majority_on_trees,
        2,
        ACCURACY,
        'Random trees of 500 nodes: are more nodes red than blue within 8 edges? 40 trees for training, 20 for validation, 40 '
        'for test.',
    ),
    'tree_distances': Task(
        distances_on_trees,
        17,
        ACCURACY,
        'Random trees of 500 nodes with 5 marked nodes: how many edges away is the next marked node, 0 to 15 or more? 40 trees '
        'for training, 20 for validation, 40 for test.',
    ),
    'lookup': Task(
        lookup_on_trees,
        2,
        ACCURACY,
        'Random trees of 500 nodes, each with one of eight keys: are more red than blue, within 4 edges, of the nodes that '
        'have the key that a node asks for? 40 trees for training, 20 for validation, 40 for test.',
    ),
    'rings': Task(
        transfer_on_rings,
        5,
        ACCURACY,
        'Rings of 40 nodes: which of five classes does the node opposite have, 20 edges away? 400 rings for training, 200 for '
        'validation, 400 for test.',
        splits=5,
    ),
    'crossed_rings': Task(
        lambda seed: transfer_on_rings(seed, crossed=True),
        5,
        ACCURACY,
        'Rings of 40 nodes whose two sides are joined by two edges at each step: which of five classes does the node opposite '
        'have, 20 edges away? 400 rings for training, 200 for validation, 400 for test.',
        splits=5,
    ),
    'match': Task(
        match_on_trees,
        16,
        ACCURACY,
        'Binary trees of depth 4: which of 16 classes does the leaf have whose key the root asks for? 4,000 trees for '
        'training, 1,000 for validation, 2,000 for test.',
        splits=3,
    ),
    'meshes': Task(
        _meshes,
        3,
        EXPLAINED,
        'Normals of vertices of meshes of which 5 % are known, on patches of 2,000 vertices: 16 of the bunny for training, 8 '
        'for validation, 16 of the armadillo for test. Patches of one mesh overlap, also those of training and validation.',
    ),
    'peptides': _peptides(2_000),
    'all_peptides': _peptides(10_873),
    'traffic': Task(
        _traffic,
        1,
        EXPLAINED,
        'Speed of traffic at a quarter of 207 sensors, which are never known, from those of the others at the same time; 256 '
        'times for training, 128 for validation, 128 for test.',
        splits=5,
    ),
    'distances': Task(
        distances_to_infected,
        6,
        ACCURACY,
        'Edges to the next infected node in Erdos-Renyi graphs of 15,000 nodes with 3 neighbors on average, 2 % of them '
        'infected: 0 to 4, or more. One graph for training, one for validation, one for test.',
        splits=5,
    ),
}
