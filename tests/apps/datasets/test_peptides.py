from __future__ import annotations

import csv
import gzip
from pathlib import Path

import numpy as np
import pytest
import torch

from pyg_topomask.apps.datasets import public_files
from pyg_topomask.apps.datasets.public_files import PeptidesFunctional

ROWS = [('CC', [1] + 9 * [0]), ('CCO', 10 * [1]), ('C=C', 10 * [0]), ('N', 9 * [0] + [1])]


def fake_from_smiles(smiles: str) -> public_files.Data:
    """A path of the letters, so that the test needs no RDKit."""
    atoms = torch.tensor([[ord(letter)] * 9 for letter in smiles if letter.isalpha()]).view(-1, 9)
    nodes = torch.arange(len(atoms))
    edges = torch.stack([nodes[:-1], nodes[1:]]) if len(atoms) > 0 else nodes.view(2, 0)
    return public_files.Data(x=atoms, edge_index=edges, edge_attr=torch.zeros(edges.size(1), 3).long(), smiles=smiles)


def write(root: Path, rows: list[tuple[str, list[int]]] = ROWS) -> str:
    with gzip.open(root / 'peptide_multi_class_dataset.csv.gz', 'wt', newline='') as file:
        writer = csv.writer(file)
        writer.writerow(['', 'smiles', 'peptide_seq', 'labels', 'identifier'])
        writer.writerows([[index, smiles, 'VKL', labels, 'x'] for index, (smiles, labels) in enumerate(rows)])
    np.savez(root / 'splits_random_stratified.npz', train=np.int32([3, 0]), val=np.int32([1]), test=np.int32([2]))
    return str(root)


def test_graphs_labels_and_splits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(public_files, 'from_smiles', fake_from_smiles)
    dataset = PeptidesFunctional(write(tmp_path))
    assert [data.num_nodes for data in dataset] == [2, 3, 2, 1]
    assert [data.y.tolist() for data in dataset] == [[labels] for _, labels in ROWS]
    assert dataset[1].x[:, 0].tolist() == [67, 67, 79]
    assert dataset[1].edge_index.tolist() == [[0, 1], [1, 2]]
    assert 'smiles' not in dataset[1]
    assert {name: index.tolist() for name, index in dataset.split_indices().items()} == {
        'train': [3, 0],
        'val': [1],
        'test': [2],
    }
    train = PeptidesFunctional(str(tmp_path), split='train')
    assert [data.num_nodes for data in train] == [1, 2]
    again = PeptidesFunctional(str(tmp_path))
    assert torch.equal(again._data.x, dataset._data.x)


def test_real_molecules_of_rdkit(tmp_path: Path) -> None:
    pytest.importorskip('rdkit', reason='RDKit is not installed')
    dataset = PeptidesFunctional(write(tmp_path))
    assert [data.num_nodes for data in dataset] == [2, 3, 2, 1]
    assert dataset[1].x[:, 0].tolist() == [6, 6, 8]
    assert dataset[1].edge_attr.shape == (4, 3)
    assert not torch.equal(dataset[0].edge_attr, dataset[2].edge_attr)


def test_bad_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(FileNotFoundError, match=r'no peptide_multi_class_dataset.csv.gz, splits_random_stratified.npz in '):
        PeptidesFunctional(str(tmp_path))
    with pytest.raises(ValueError, match=r"^split: got 'dev'"):
        PeptidesFunctional(str(tmp_path), split='dev')

    def missing(smiles: str) -> None:
        raise ImportError('rdkit')

    monkeypatch.setattr(public_files, 'from_smiles', missing)
    with pytest.raises(ImportError, match=r'pyg_topomask with its extra \[molecules\]'):
        PeptidesFunctional(write(tmp_path))
    monkeypatch.setattr(public_files, 'from_smiles', fake_from_smiles)
    with pytest.raises(ValueError, match=r"^smiles: got '\?'"):
        PeptidesFunctional(write(tmp_path, [('?', 10 * [0])]))
