r"""Transforms that sample points of a cloud."""

from __future__ import annotations

from copy import copy

import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.data.datapipes import functional_transform

from pyg_topomask.errors import ArgumentError
from pyg_topomask.graphs.graph import device_of
from pyg_topomask.ops.knn import check_positions
from pyg_topomask.transforms.checks import check_has_positions, check_single
from pyg_topomask.transforms.graph_transform import GraphTransform
from pyg_topomask.utils.checks import check_whole, checked_seed


def farthest_points(pos: Tensor, num: int, start: int = 0) -> Tensor:
    r"""Returns the indices of up to :obj:`num` points, selected by exact farthest point sampling, as in `"PointNet++"
    <https://arxiv.org/abs/1706.02413>`_ (Sec. 3.2): each point is the farthest one from the points before it. In a tie, it is
    the first one. Time is :math:`O(N \cdot num)`.

    Example:
        >>> farthest_points(torch.tensor([[0.0], [1.0], [5.0], [9.0]]), num=3)
        tensor([0, 3, 2])
    """
    check_positions(pos)
    check_whole(1, num=num)
    num = min(num, pos.size(0))
    if num == 0:
        return torch.empty(0, dtype=torch.long, device=pos.device)
    check_whole(0, pos.size(0) - 1, start=start)
    pos = pos.detach().to(torch.promote_types(pos.dtype, torch.float32))
    pos = pos.t().contiguous()  # one row per coordinate, because sums over three columns are slow
    chosen = torch.full((num,), start, dtype=torch.long, device=pos.device)
    nearest = torch.full((pos.size(1),), torch.inf, dtype=pos.dtype, device=pos.device)
    for place in range(1, num):
        last = chosen[place - 1]
        nearest = torch.minimum(nearest, (pos - pos[:, last].unsqueeze(1)).square().sum(0))
        nearest[last] = -1  # selected, even if points coincide
        chosen[place] = nearest.argmax()
    return chosen


def _check(data: Data) -> int:
    check_single(data)
    if 'adj_t' in data:
        raise ArgumentError('data', 'data with adj_t', 'data with edge_index', 'apply ToSparseTensor afterwards')
    return int(data.num_nodes or 0)


class _Sampling(GraphTransform):
    def __init__(self, num: int, seed: int = 0) -> None:
        check_whole(1, num=num)
        self.num = num
        self.seed = checked_seed(seed=seed)

    def __repr__(self) -> str:
        return f'{type(self).__name__}({self.num}, seed={self.seed})'


@functional_transform('topo_random_sampling')
class RandomSampling(_Sampling):
    r"""Keeps a random subset of the nodes, with their attributes and the edges between them (functional name:
    :obj:`topo_random_sampling`). The nodes keep their order, and :obj:`face` is removed. Unlike that of
    :class:`torch_geometric.transforms.FixedPoints`, the sample depends only on the seed and the number of nodes, and has no
    duplicates.

    Args:
        num (int): The number of nodes to keep. Smaller graphs keep all of their nodes.
        seed (int): The seed. (default: :obj:`0`)

    Shapes:
        - **input:** a graph with :math:`|\mathcal{V}|` nodes
        - **output:** a graph with :math:`\min(\text{num}, |\mathcal{V}|)` nodes

    Example:
        >>> RandomSampling(2)(Data(pos=torch.rand(5, 3)))
        Data(pos=[2, 3])
    """

    def forward(self, data: Data) -> Data:
        num_nodes = _check(data)
        if num_nodes <= self.num:
            return data
        order = torch.randperm(num_nodes, generator=torch.Generator().manual_seed(self.seed))
        return _keep(data, order[: self.num])


@functional_transform('topo_farthest_sampling')
class FarthestSampling(_Sampling):
    r"""Keeps nodes by exact farthest point sampling of :obj:`pos`, with their attributes and the edges between them
    (functional name: :obj:`topo_farthest_sampling`). Each point is the farthest one from the points before it, as in
    `"PointNet++" <https://arxiv.org/abs/1706.02413>`_ (Sec. 3.2). The first point is random. The nodes keep their order,
    and :obj:`face` is removed.

    Args:
        num (int): The number of nodes to keep. Smaller graphs keep all of their nodes.
        seed (int): The seed. (default: :obj:`0`)

    Shapes:
        - **input:** a graph with :math:`|\mathcal{V}|` nodes and positions :obj:`pos` :math:`(|\mathcal{V}|, D)`
        - **output:** a graph with :math:`\min(\text{num}, |\mathcal{V}|)` nodes

    Example:
        >>> FarthestSampling(2)(Data(pos=torch.tensor([[0.0], [0.1], [0.2], [7.0]]))).pos[1]
        tensor([7.])
    """

    def forward(self, data: Data) -> Data:
        num_nodes = _check(data)
        check_has_positions(data)
        if num_nodes <= self.num:
            return data
        start = int(torch.randint(num_nodes, (1,), generator=torch.Generator().manual_seed(self.seed)))
        return _keep(data, farthest_points(data.pos, self.num, start))


def _keep(data: Data, chosen: Tensor) -> Data:
    if 'face' in data:  # PyG's subgraph would keep the old indices
        data = copy(data)
        del data.face
    return data.subgraph(chosen.to(device_of(data) or chosen.device).sort().values)
