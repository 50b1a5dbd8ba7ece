r"""Molecules whose atoms and bonds have kinds."""

from __future__ import annotations

import csv
import gzip
import importlib.util
import tempfile
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import one_hot
from torch_geometric.data import Data
from torch_geometric.utils import from_smiles
from torch_geometric.utils.smiles import e_map, x_map

from benchmarks.harness import Unavailable, data_folder
from pyg_topomask.apps.datasets import PeptidesFunctional

__all__ = ['molecules_of_moleculenet', 'molecules_of_peptides', 'molecules_of_zinc']

#: The kinds of each property of atoms and bonds in :func:`torch_geometric.utils.from_smiles`.
ATOM, BOND = ([len(kinds) for kinds in properties.values()] for properties in (x_map, e_map))
#: The kinds of atoms and bonds of ZINC-12k, which are numbered from 0 and from 1.
ZINC_ATOM, ZINC_BOND = [28], [4]


@cache
def molecules_of_moleculenet(file: str, smiles: str, target: str) -> list[Data]:
    r"""Returns the molecules of a set of MoleculeNet, with the features of :func:`torch_geometric.utils.from_smiles`.

    Args:
        file (str): The file in the folder :obj:`moleculenet`.
        smiles (str): The column of molecules.
        target (str): The column of targets.
    """
    _check_rdkit()
    path = data_folder('moleculenet') / file
    with gzip.open(path, 'rt', newline='') if path.suffix == '.gz' else path.open(newline='') as text:
        rows = list(csv.DictReader(text))
    read = [(from_smiles(row[smiles]), torch.tensor([[float(row[target])]])) for row in rows]
    return [_molecule(data.x, data.edge_index, data.edge_attr, y, ATOM, BOND) for data, y in read if data.num_nodes]


@cache
def molecules_of_peptides() -> tuple[list[Data], ...]:
    r"""Returns the peptides of the official splits of Peptides-func, with the features of
    :func:`torch_geometric.utils.from_smiles`, and ten labels.
    """
    _check_rdkit()
    with tempfile.TemporaryDirectory() as folder:
        for path in (data_folder('lrgb') / 'peptides_func').iterdir():
            (Path(folder) / path.name).symlink_to(path.resolve())
        parts = [list(PeptidesFunctional(folder, split=part)) for part in ('train', 'val', 'test')]
    return tuple([_molecule(data.x, data.edge_index, data.edge_attr, data.y, ATOM, BOND) for data in part] for part in parts)


@cache
def molecules_of_zinc() -> list[Data]:
    r"""Returns the 2,000 molecules of validation and test of ZINC-12k. An atom has one kind, and a bond too. The target is the
    penalized logP.
    """
    molecules = []
    with np.load(data_folder('molecules') / 'zinc12k_val_test.npz') as file:
        for part in ('val', 'test'):
            x, edges, bonds, y, nodes, ends = (
                torch.from_numpy(file[f'{part}_{name}'])
                for name in ('x', 'edge_index', 'edge_attr', 'y', 'node_ptr', 'edge_ptr')
            )
            for index, target in enumerate(y):
                atoms, own = slice(*nodes[index : index + 2]), slice(*ends[index : index + 2])
                given = x[atoms].view(-1, 1), edges[:, own].long(), bonds[own].view(-1, 1)
                molecules.append(_molecule(*given, target.view(1, 1), ZINC_ATOM, ZINC_BOND))
    return molecules


def _check_rdkit() -> None:
    if importlib.util.find_spec('rdkit') is None:
        raise Unavailable('RDKit is not installed: install pyg_topomask with its extra [molecules]')


def _molecule(x: Tensor, edge_index: Tensor, edge_attr: Tensor, y: Tensor, atom: Sequence[int], bond: Sequence[int]) -> Data:
    return Data(x=_one_hot(x, atom), edge_index=edge_index, edge_attr=_one_hot(edge_attr, bond), y=y.float())


def _one_hot(columns: Tensor, sizes: Iterable[int]) -> Tensor:
    return torch.cat([one_hot(kind.long(), size) for kind, size in zip(columns.t(), sizes, strict=True)], 1).float()
