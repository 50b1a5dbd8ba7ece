r"""A transform that estimates the normals of a cloud of points."""

from __future__ import annotations

import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.data.datapipes import functional_transform
from torch_geometric.transforms import BaseTransform

from pyg_topomask.ops.knn import knn_graph

__all__ = ['AddNormals']

ORIENTATIONS = ('outward', 'up')


@functional_transform('add_normals')
class AddNormals(BaseTransform):
    r"""Stores, as :obj:`normal`, the direction in which the nearest neighbors of a point vary least, of length 1: the normal of
    a surface through them (`"Surface reconstruction from unorganized points" <https://doi.org/10.1145/133994.134011>`_,
    Sec. 3.2; functional name: :obj:`add_normals`). Points whose neighbors lie on a line or in a point have none and get zeros.

    Args:
        k (int): The number of nearest points, itself included. (default: :obj:`16`)
        orient (str): Which of the two directions to take: :obj:`"outward"`, away from the mean of the cloud, or :obj:`"up"`,
            along the last coordinate. (default: :obj:`"outward"`)
        cat (bool): Append the normals to :obj:`x` as well, or to the positions where there is none. (default: :obj:`False`)

    Raises:
        ValueError: If :obj:`k` is below 3, :obj:`orient` is unknown, or the data is heterogeneous, or has no :obj:`pos`, one
            that does not fit, or one of a single dimension.

    Example:
        >>> square = torch.tensor([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [1.0, 1.0, 0.0]])
        >>> AddNormals(k=4, orient='up')(Data(pos=square)).normal[0].abs()
        tensor([0., 0., 1.])
    """

    def __init__(self, k: int = 16, orient: str = 'outward', cat: bool = False) -> None:
        if k < 3:
            raise ValueError(f'k: got {k}; accepted are numbers from 3')
        if orient not in ORIENTATIONS:
            raise ValueError(f'orient: got {orient!r}; accepted are {", ".join(ORIENTATIONS)}')
        self.k = k
        self.orient = orient
        self.cat = cat

    def forward(self, data: Data) -> Data:
        if not isinstance(data, Data):
            raise ValueError(
                f'data: got {type(data).__name__}; accepted is torch_geometric.data.Data (of HeteroData, use to_homogeneous())'
            )
        if 'pos' not in data or data.pos.dim() != 2 or data.pos.size(1) < 2:
            raise ValueError(f'data: got {data}; accepted is data with pos of two dimensions or more')
        batch = data.batch if 'batch' in data else None
        data.normal = self._normals(data.pos.detach(), batch)
        if self.cat:
            x = data.x if 'x' in data else data.pos
            data.x = torch.cat([x.unsqueeze(1) if x.dim() == 1 else x.flatten(1), data.normal.to(x.dtype)], dim=1)
        return data

    def _normals(self, pos: Tensor, batch: Tensor | None) -> Tensor:
        center, neighbor = knn_graph(pos, self.k, batch, loop=True)
        step = (pos[neighbor] - pos[center]).double()
        size, dim = pos.shape
        count = step.new_zeros(size).index_add_(0, center, step.new_ones(center.numel())).clamp(min=1)
        mean = step.new_zeros(size, dim).index_add_(0, center, step) / count.unsqueeze(1)
        step = step - mean[center]
        # Coordinate by coordinate: all products of a step at once would take D times the memory of the steps.
        rows = [step.new_zeros(size, dim).index_add_(0, center, step * step[:, axis : axis + 1]) for axis in range(dim)]
        spread, axes = torch.linalg.eigh(torch.stack(rows, dim=1) / count.view(-1, 1, 1))
        normal = axes[:, :, 0]
        flat = spread[:, 1] <= 1e-9 * spread[:, -1]  # a line, or a point: two directions vary equally little
        outward = pos.double() - _mean(pos.double(), batch)
        along = normal[:, -1] if self.orient == 'up' else (normal * outward).sum(1)
        normal = torch.where((along < 0).unsqueeze(1), -normal, normal)
        return normal.masked_fill(flat.unsqueeze(1), 0.0).to(pos.dtype)

    def __repr__(self) -> str:
        return f'{type(self).__name__}(k={self.k}, orient={self.orient!r}, cat={self.cat})'


def _mean(pos: Tensor, batch: Tensor | None) -> Tensor:
    if batch is None:
        return pos.mean(0) if pos.size(0) > 0 else pos
    num_graphs = int(batch.max()) + 1 if batch.numel() > 0 else 0
    total = pos.new_zeros(num_graphs, pos.size(1)).index_add_(0, batch, pos)
    return (total / torch.bincount(batch).clamp(min=1).unsqueeze(1))[batch]
