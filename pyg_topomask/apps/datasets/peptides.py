r"""Peptides as graphs of their atoms."""

from __future__ import annotations

import ast
import csv
import gzip

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.utils import from_smiles

from pyg_topomask.apps.datasets.bases import SPLITS, FileDataset
from pyg_topomask.errors import ArgumentError


class PeptidesFunctional(FileDataset):
    r"""Peptides-func of the `"Long Range Graph Benchmark" <https://arxiv.org/abs/2206.08164>`_: 15,535 peptides as graphs of
    about 151 atoms each. The task is to predict ten functions. The official split has 10,873, 2,331 and 2,331 graphs.

    :func:`torch_geometric.utils.from_smiles`, which needs RDKit, creates the graphs from the original SMILES. :obj:`x` has nine
    and :obj:`edge_attr` has three categorical features, and :obj:`y` has ten binary labels, :obj:`[1, 10]`. The graphs are
    those of the benchmark. Its features come from OGB, and are similar but not identical.

    Args:
        root (str): The folder with :obj:`peptide_multi_class_dataset.csv.gz` and :obj:`splits_random_stratified.npz` (indices
            :obj:`train`, :obj:`val` and :obj:`test`).
    """

    raw_file_names = ['peptide_multi_class_dataset.csv.gz', 'splits_random_stratified.npz']
    stem = 'peptides_functional'
    source = 'https://github.com/vijaydwivedi75/lrgb'

    def read(self) -> tuple[list[Data], dict[str, Tensor]]:
        with np.load(self.raw_paths[1]) as file:
            splits = {name: torch.from_numpy(file[name]).long() for name in SPLITS}
        with gzip.open(self.raw_paths[0], 'rt', newline='') as file:
            graphs = [_graph(row['smiles'], row['labels']) for row in csv.DictReader(file)]
        return graphs, splits


def _graph(smiles: str, labels: str) -> Data:
    try:
        data = from_smiles(smiles)
    except ImportError as error:
        raise ImportError('PeptidesFunctional needs RDKit: install pyg_topomask with its extra [molecules]') from error
    if data.num_nodes == 0:
        raise ArgumentError('smiles', repr(smiles), 'molecules that RDKit can read')
    label = torch.tensor([ast.literal_eval(labels)]).float()
    # As real numbers: transforms append encodings to them.
    return Data(x=data.x.float(), edge_index=data.edge_index, edge_attr=data.edge_attr, y=label)
