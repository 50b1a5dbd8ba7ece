r"""Transforms that store the grid shape of a graph, and that build grids from images and videos."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.data.datapipes import functional_transform

from pyg_topomask.errors import ArgumentError
from pyg_topomask.graphs.graph import device_of
from pyg_topomask.graphs.grid_edges import grid_edges
from pyg_topomask.transforms.base import GraphTransform, check_single
from pyg_topomask.utils.checks import is_whole


@functional_transform('add_grid_shape')
class AddGridShape(GraphTransform):
    r"""Stores the shape of the grid of nodes as :obj:`grid_shape`, for :class:`~pyg_topomask.masks.ToeplitzMask` (functional
    name: :obj:`add_grid_shape`). The nodes are in row-major order.

    Args:
        shape (sequence of int): The number of nodes in each dimension. Their product is the number of nodes of the graph.

    Shapes:
        - **input:** a graph with :math:`\prod_k n_k` nodes
        - **output:** the graph, with :obj:`grid_shape` :math:`(1, d)`

    Example:
        >>> AddGridShape((2, 3))(Data(num_nodes=6)).grid_shape
        tensor([[2, 3]])
    """

    def __init__(self, shape: Sequence[int]) -> None:
        sizes = shape if isinstance(shape, Sequence) else ()
        if not sizes or not all(is_whole(size, 0) for size in sizes):
            raise ArgumentError('shape', repr(shape), 'one or more whole numbers from 0, such as (3, 4)')
        self.shape = tuple(sizes)

    def forward(self, data: Data) -> Data:
        check_single(data)
        num_nodes = data.num_nodes or 0
        if math.prod(self.shape) != num_nodes:
            given = f'{self.shape}, a grid of {math.prod(self.shape)} nodes, for data of {num_nodes} nodes'
            raise ArgumentError('shape', given, 'shapes of as many nodes')
        data.grid_shape = torch.tensor([self.shape], device=device_of(data))
        return data


@functional_transform('to_grid_graph')
class ToGridGraph(GraphTransform):
    r"""Converts a sequence, an image or a video to a grid graph (functional name: :obj:`to_grid_graph`).

    The graph has one node per pixel. :obj:`x` contains the channels of the pixel, and :obj:`pos` its position. Edges in both
    directions connect neighbors along each dimension. :obj:`grid_shape` is :obj:`(L,)`, :obj:`(H, W)` or :obj:`(T, H, W)`.

    Shapes:
        - **input:** a sequence :math:`(C, L)`, an image :math:`(C, H, W)` or a video :math:`(T, C, H, W)`
        - **output:** a graph with :obj:`x` :math:`(|\mathcal{V}|, C)`, :obj:`pos` :math:`(|\mathcal{V}|, d)`, edge indices
          :math:`(2, |\mathcal{E}|)` and :obj:`grid_shape` :math:`(1, d)`, where :math:`d` is 1, 2 or 3

    Example:
        >>> ToGridGraph()(torch.rand(3, 4, 5))
        Data(x=[20, 3], edge_index=[2, 62], pos=[20, 2], grid_shape=[1, 2])
    """

    def forward(self, data: Tensor) -> Data:
        if not isinstance(data, Tensor) or data.dim() not in (2, 3, 4):
            got = f'shape {tuple(data.shape)}' if isinstance(data, Tensor) else type(data).__name__
            raise ArgumentError('data', got, 'tensors [C, L], [C, H, W] and [T, C, H, W]')
        channels_last = data.movedim(1 if data.dim() == 4 else 0, -1)
        shape = channels_last.shape[:-1]
        axes = [torch.arange(size, device=data.device) for size in shape]
        pos = torch.stack(torch.meshgrid(*axes, indexing='ij'), dim=-1).view(-1, len(shape))
        return Data(
            x=channels_last.flatten(0, -2),
            edge_index=grid_edges(shape, data.device),
            pos=pos.to(torch.get_default_dtype()),
            grid_shape=torch.tensor([shape], device=data.device),
        )
