r"""A transform that estimates the normals of a point cloud."""

from __future__ import annotations

import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.data.datapipes import functional_transform
from torch_geometric.nn import global_mean_pool
from torch_geometric.utils import scatter

from pyg_topomask.errors import ArgumentError
from pyg_topomask.ops.knn import knn_graph
from pyg_topomask.transforms.checks import check_has_positions
from pyg_topomask.transforms.graph_transform import GraphTransform
from pyg_topomask.utils.checks import check_choice, check_whole

ORIENTATIONS = ('outward', 'up')


@functional_transform('add_normals')
class AddNormals(GraphTransform):
    r"""Stores the normal of the surface through the nearest neighbors of each point as :obj:`normal` (functional name:
    :obj:`add_normals`), from `"Surface reconstruction from unorganized points" <https://doi.org/10.1145/133994.134011>`_ (Sec.
    3.2). The normal is the unit vector along which these neighbors vary least. It is zero if the neighbors are on a line or
    coincide.

    Args:
        k (int): The number of nearest points, including the point itself, from 3. (default: :obj:`16`)
        orient (str): The choice between the two directions: :obj:`"outward"`, away from the mean of the cloud, or :obj:`"up"`,
            along the last coordinate. (default: :obj:`"outward"`)
        cat (bool): Also append the normals to :obj:`x`, or to the positions if there is no :obj:`x`. (default: :obj:`False`)

    Shapes:
        - **input:** positions :obj:`pos` :math:`(|\mathcal{V}|, D)` with :math:`D \ge 2`, node features :obj:`x`
          :math:`(|\mathcal{V}|, F)` *(optional)*
        - **output:** the graph, with :obj:`normal` :math:`(|\mathcal{V}|, D)`, and with :obj:`cat=True` node features
          :math:`(|\mathcal{V}|, F + D)`

    Example:
        >>> square = torch.tensor([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [1.0, 1.0, 0.0]])
        >>> AddNormals(k=4, orient='up')(Data(pos=square)).normal[0].abs()
        tensor([0., 0., 1.])
    """

    def __init__(self, k: int = 16, orient: str = 'outward', cat: bool = False) -> None:
        check_whole(3, k=k)
        check_choice(ORIENTATIONS, orient=orient)
        self.k = k
        self.orient = orient
        self.cat = cat

    def forward(self, data: Data) -> Data:
        check_has_positions(data)
        if data.pos.dim() != 2 or data.pos.size(1) < 2:
            raise ArgumentError('data', f'pos of shape {tuple(data.pos.shape)}', 'positions in two dimensions or more')
        batch = data.batch if 'batch' in data else None
        data.normal = self._normals(data.pos.detach(), batch)
        if self.cat:
            x = data.x if 'x' in data else data.pos
            dtype = x.dtype if x.is_floating_point() else data.normal.dtype
            data.x = torch.cat([(x.unsqueeze(1) if x.dim() == 1 else x.flatten(1)).to(dtype), data.normal.to(dtype)], dim=1)
        return data

    def _normals(self, pos: Tensor, batch: Tensor | None) -> Tensor:
        neighbor, center = knn_graph(pos, self.k, batch, loop=True)
        step = (pos[neighbor] - pos[center]).double()
        step = step - scatter(step, center, dim_size=pos.size(0), reduce='mean')[center]
        # One coordinate at a time: all products of a step at once would take D times the memory.
        rows = [scatter(step * along.unsqueeze(1), center, dim_size=pos.size(0), reduce='mean') for along in step.unbind(1)]
        spread, axes = torch.linalg.eigh(torch.stack(rows, dim=1))
        normal = axes[:, :, 0]
        flat = spread[:, 1] <= 1e-9 * spread[:, -1]  # a line or a point: two directions vary equally little
        batch = None if batch is None else batch.long()
        mean = global_mean_pool(pos.double(), batch)
        outward = pos.double() - (mean if batch is None else mean[batch])
        along = normal[:, -1] if self.orient == 'up' else (normal * outward).sum(1)
        normal = torch.where((along < 0).unsqueeze(1), -normal, normal)
        return normal.masked_fill(flat.unsqueeze(1), 0.0).to(pos.dtype)

    def __repr__(self) -> str:
        return f'{type(self).__name__}(k={self.k}, orient={self.orient!r}, cat={self.cat})'
