r"""Laser scans and depth images as labeled point clouds."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from pyg_topomask.apps.datasets.bases import SPLITS, FileDataset, Transform
from pyg_topomask.utils.checks import check_choice, check_whole


def stratified(strata: Tensor, shares: Sequence[float] = (0.7, 0.15, 0.15)) -> dict[str, Tensor]:
    r"""Splits each stratum by the given shares, in a fixed random order."""
    generator = torch.Generator().manual_seed(0)
    splits: dict[str, list[Tensor]] = {name: [] for name in SPLITS}
    for stratum in strata.unique():
        members = (strata == stratum).nonzero().squeeze(1)
        members = members[torch.randperm(members.numel(), generator=generator)]
        first, second = (round(sum(shares[:end]) * members.numel()) for end in (1, 2))
        for name, share in zip(SPLITS, members.tensor_split([first, second]), strict=True):
            splits[name].append(share)
    return {name: torch.cat(indices).sort().values for name, indices in splits.items()}


class UrbanObjects(FileDataset):
    r"""499 objects from aerial laser scans of the DALES Objects collection in :obj:`urban_objects.npz`, for point cloud
    classification: buildings (0), cars (1), fences (2), poles (3) and trees (4), of 101 to 28,100 points.

    Each has :obj:`pos` in meters, :obj:`x`, which is :obj:`pos` relative to its mean, and :obj:`y`. There are no edges. Add
    them with a transform such as :class:`~pyg_topomask.transforms.KNNGraph`, after transforms that sample points or estimate
    normals. 70 % of each class are for training, 15 % for validation and 15 % for testing, in a fixed split.
    """

    raw_file_names = ['urban_objects.npz']
    stem = 'urban_objects'
    source = 'https://github.com/ATRM-Raphael/geo5017_A2'

    def read(self) -> tuple[list[Data], dict[str, Tensor]]:
        with np.load(self.raw_paths[0]) as file:
            pos = torch.from_numpy(file['pos_cm'].astype(np.float32) / np.float32(100))
            sizes, label = np.diff(file['ptr']).tolist(), torch.from_numpy(file['y']).long()
        clouds = [
            Data(pos=cloud, x=cloud - cloud.mean(0), y=y.view(1)) for cloud, y in zip(pos.split(sizes), label, strict=True)
        ]
        return clouds, stratified(label)


#: Scenes of :class:`SceneBlocks`: their files, and the classes.
SCENES = {
    'table': (('osd_test43.npz', 'osd_test56.npz'), 'table and background 0, objects 1'),
    'forest': (('lidar_mixedconifer.npz',), 'ground, undergrowth and the like 0, trees 1'),
    'lake': (('lidar_topography.npz',), 'unclassified 0, ground 1, water 2'),
}


class SceneBlocks(FileDataset):
    r"""Scanned scenes, split into blocks of points, for point cloud segmentation:

    * :obj:`"table"`: two table tops with objects on them, of 170,986 and 165,114 points, by a depth camera;
    * :obj:`"forest"`: 37,657 points of a forest, by an aerial laser;
    * :obj:`"lake"`: 73,403 points of a hillside with a lake, by an aerial laser.

    Each block has :obj:`pos`, :obj:`x`, which is the position relative to the block's mean with the color or the intensity in
    :math:`[0, 1]`, and :obj:`y`, the class of each point, see :obj:`SCENES`. 70 % of the blocks of a file are for training,
    15 % for validation and 15 % for testing, in a fixed split. Blocks of different splits may be neighbors.
    If a file has few blocks, as with :obj:`max_points=None`, splits may be empty.

    Args:
        name (str): The scene. (default: :obj:`"table"`)
        max_points (int, optional): The largest number of points in a block, or :obj:`None` for the whole scene.
            (default: :obj:`4096`)
    """

    def __init__(
        self,
        root: str,
        name: str = 'table',
        max_points: int | None = 4096,
        split: str | None = None,
        transform: Transform | None = None,
        pre_transform: Transform | None = None,
    ) -> None:
        check_choice(SCENES, name=name)
        if max_points is not None:
            check_whole(1, max_points=max_points)
        self.name = name
        self.max_points = max_points
        self.raw_file_names = list(SCENES[name][0])
        self.source = f'https://github.com/{"PointCloudLibrary/data" if name == "table" else "r-lidar/lidR"}'
        self.stem = f'{name}_{max_points or "whole"}'
        super().__init__(root, split, transform, pre_transform)

    def read(self) -> tuple[list[Data], dict[str, Tensor]]:
        blocks, strata = [], []
        for stratum, path in enumerate(self.raw_paths):
            pos, extra, label = _read_scene(self.name, Path(path))
            cuts = cut_into_blocks(pos, self.max_points or max(pos.size(0), 1))
            for points in cuts:
                x = torch.cat([pos[points] - pos[points].mean(0), extra[points]], dim=1)
                blocks.append(Data(pos=pos[points], x=x, y=label[points]))
            strata += [stratum] * len(cuts)
        return blocks, stratified(torch.tensor(strata))


def _read_scene(name: str, path: Path) -> tuple[Tensor, Tensor, Tensor]:
    with np.load(path) as file:
        pos = torch.from_numpy(file['pos'])
        if name == 'table':
            return pos, torch.from_numpy(file['rgb']).float() / 255, torch.from_numpy(file['y'] >= 20).long()
        intensity = torch.from_numpy(file['intensity'].astype(np.float32)).view(-1, 1)
        label = file['tree_id'] >= 0 if name == 'forest' else np.searchsorted([1, 2, 9], file['y'])
        return pos, intensity / intensity.max(), torch.from_numpy(label).long()


def cut_into_blocks(pos: Tensor, max_points: int) -> list[Tensor]:
    r"""Recursively splits a cloud with positions :obj:`[N, D]` into two halves of equal size, across its longest side, until no
    block has more than :obj:`max_points` points. Returns the points of each block, ascending.

    Example:
        >>> cut_into_blocks(torch.tensor([[0.0, 0.0], [9.0, 1.0], [1.0, 1.0]]), max_points=2)
        [tensor([0]), tensor([1, 2])]
    """
    check_whole(1, max_points=max_points)
    large, blocks = [torch.arange(pos.size(0))], []
    while large:
        points = large.pop()
        if points.numel() <= max_points:
            blocks.append(points.sort().values)
            continue
        corner, opposite = pos[points].amin(0), pos[points].amax(0)
        longest = int((opposite - corner).argmax())
        order = pos[points, longest].argsort(stable=True)
        half = points.numel() // 2
        large += [points[order[half:]], points[order[:half]]]
    return blocks
