r"""PyG datasets with one object per split, joined to one dataset with the indices of its splits."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import torch
from torch import Tensor
from torch_geometric.data import Data, InMemoryDataset
from torch_geometric.datasets import (
    S3DIS,
    ZINC,
    Actor,
    Amazon,
    GNNBenchmarkDataset,
    LRGBDataset,
    MalNetTiny,
    ModelNet,
    Planetoid,
    ShapeNet,
    TUDataset,
    WebKB,
    WikipediaNetwork,
)
from torch_geometric.graphgym.config import cfg
from torch_geometric.graphgym.loader import set_dataset_attr
from torch_geometric.transforms import LocalDegreeProfile, RandomNodeSplit

from pyg_topomask.apps.datasets.bases import SPLITS
from pyg_topomask.apps.datasets.point_clouds import stratified
from pyg_topomask.errors import ArgumentError
from pyg_topomask.utils.checks import check_choice

SPLIT_KEYS = tuple(f'{split}_graph_index' for split in SPLITS)


def set_splits(dataset: InMemoryDataset, indices: Mapping[str, Tensor]) -> None:
    r"""Sets the indices of the graphs of each split, as GraphGym stores them."""
    for split, index in indices.items():
        set_dataset_attr(dataset, f'{split}_graph_index', index, len(index))


def join(splits: Sequence[InMemoryDataset], val: int | None = None, seed: int = 0) -> InMemoryDataset:
    r"""Joins the datasets of the splits to one dataset with :obj:`train_graph_index`, :obj:`val_graph_index` and
    :obj:`test_graph_index` set. With a number :obj:`val`, the datasets are those for training and testing, and so many random
    training graphs are for validation.
    """
    if len(splits) != (3 if val is None else 2):
        raise ArgumentError('splits', f'{len(splits)} with val={val}', 'three, or two and a number')
    dataset = splits[0]
    graphs = [split.get(int(index)) for split in splits for index in split.indices()]
    ends = torch.tensor([len(split) for split in splits]).cumsum(0).tolist()
    indices: list[Tensor] = list(torch.arange(ends[-1]).tensor_split(ends[:-1]))
    if val is not None:
        order = torch.randperm(ends[0], generator=torch.Generator().manual_seed(seed))
        indices = [order[val:].sort().values, order[:val].sort().values, indices[1]]
    dataset.data, dataset.slices = dataset.collate(graphs)
    dataset._indices = dataset._data_list = None
    set_splits(dataset, dict(zip(SPLITS, indices, strict=True)))
    return dataset


def append_positions(data: Data) -> Data:
    r"""Appends the positions of the nodes to their features."""
    data.x = data.pos if data.x is None else torch.cat([data.x.view(data.num_nodes, -1), data.pos.to(data.x.dtype)], dim=1)
    return data


def _in_three(make: Callable[[str], InMemoryDataset]) -> InMemoryDataset:
    return join([make(split) for split in SPLITS])


def _benchmark(root: str, name: str, split: str) -> InMemoryDataset:
    superpixels = name in ('MNIST', 'CIFAR10')
    return GNNBenchmarkDataset(root, name, split, pre_transform=append_positions if superpixels else None)


def shares_of_splits() -> list[float]:
    shares: list[float] = cfg.dataset.split
    if len(shares) != 3 or min(shares) <= 0 or abs(sum(shares) - 1) > 1e-6:
        raise ArgumentError('dataset.split', shares, 'three positive shares that sum to 1')
    return shares


def _folder(root: str, name: str) -> str:
    # GraphGPS stores these in `<dir>/<format>`. A folder with the raw files directly in `<dir>` works too.
    direct = Path(root).parent
    return str(direct) if (direct / name / 'raw').is_dir() else root


def _tu(root: str, name: str) -> InMemoryDataset:
    shares = shares_of_splits()
    dataset = TUDataset(_folder(root, name), name, use_node_attr=True)
    set_splits(dataset, stratified(dataset._data.y, shares))
    return dataset


def _amazon(root: str, name: str) -> InMemoryDataset:
    _, val, test = shares_of_splits()
    dataset = Amazon(root, name)
    dataset.data = RandomNodeSplit(num_val=val, num_test=test)(dataset._data)
    return dataset


def _modelnet(root: str, name: str) -> InMemoryDataset:
    # The vertices of a model are its points. The thesis uses 908 of the 3,991 training objects for validation.
    splits = [ModelNet(root, name.removeprefix('ModelNet'), train=train) for train in (True, False)]
    return join(splits, val=908)


def _lrgb(root: str, name: str) -> InMemoryDataset:
    return _in_three(lambda split: LRGBDataset(root, name, split))


def _superpixels(root: str, name: str, original: str) -> InMemoryDataset:
    given = f'{name!r} with dataset.slic_compactness {cfg.dataset.slic_compactness}'
    if (name, cfg.dataset.slic_compactness) != ('edge_wt_region_boundary', 30):
        raise ArgumentError('dataset.name', given, "'edge_wt_region_boundary' with 30, which PyG has as its LRGBDataset")
    return _lrgb(f'{Path(root).parent}/LRGBDataset', original)


def _zinc(root: str, name: str) -> InMemoryDataset:
    check_choice(('subset', 'full'), **{'dataset.name': name})
    return _in_three(lambda split: ZINC(root, name == 'subset', split))


#: GraphGPS's names of data sets of :obj:`LRGBDataset`, with :obj:`dataset.format: OGB`.
OGB_NAMES = {
    'peptides-functional': 'Peptides-func',
    'peptides-structural': 'Peptides-struct',
    'PCQM4Mv2Contact-shuffle': 'PCQM-Contact',
}

#: Datasets by :obj:`dataset.format`, called with the folder and :obj:`dataset.name`.
PYG_DATASETS: dict[str, Callable[[str, str], InMemoryDataset]] = {
    'PyG-Planetoid': lambda root, name: Planetoid(_folder(root, name), name),
    'PyG-GNNBenchmarkDataset': lambda root, name: _in_three(lambda split: _benchmark(root, name, split)),
    'PyG-MalNetTiny': lambda root, name: _in_three(
        lambda split: MalNetTiny(root, split=split, pre_transform=LocalDegreeProfile())
    ),
    'PyG-LRGBDataset': _lrgb,
    'PyG-VOCSuperpixels': lambda root, name: _superpixels(root, name, 'PascalVOC-SP'),
    'PyG-COCOSuperpixels': lambda root, name: _superpixels(root, name, 'COCO-SP'),
    'PyG-ZINC': _zinc,
    'PyG-Actor': lambda root, name: Actor(root),
    'PyG-WebKB': lambda root, name: WebKB(root, name),
    'PyG-WikipediaNetwork': lambda root, name: WikipediaNetwork(root, name),
    'PyG-Amazon': _amazon,
    'PyG-TUDataset': _tu,
    'PyG-ShapeNet': lambda root, name: _in_three(lambda split: ShapeNet(root, split=split, pre_transform=append_positions)),
    'PyG-S3DIS': lambda root, name: join([S3DIS(root, train=train) for train in (True, False)], val=3294),
    'PyG-ModelNet': _modelnet,
}

#: The formats that use :obj:`dataset.split`.
SPLIT_BY_SHARES = ('PyG-Amazon', 'PyG-TUDataset')


def load_pyg_dataset(format: str, name: str, dataset_dir: str) -> InMemoryDataset | None:
    r"""Loads a dataset of :obj:`PYG_DATASETS`, or returns :obj:`None` for other formats, as GraphGym's loaders do."""
    if format == 'OGB' and name in OGB_NAMES:
        return _lrgb(f'{dataset_dir}/LRGBDataset', OGB_NAMES[name])
    load = PYG_DATASETS.get(format)
    return None if load is None else load(f'{dataset_dir}/{format.removeprefix("PyG-")}', name)
