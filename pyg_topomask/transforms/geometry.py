r"""Transforms of images and point clouds: grids, neighbors, normals and samples."""

from __future__ import annotations

import math
from collections.abc import Sequence
from copy import copy

import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.data.datapipes import functional_transform
from torch_geometric.nn import global_mean_pool
from torch_geometric.utils import scatter, to_undirected

from pyg_topomask.errors import ArgumentError
from pyg_topomask.graphs.edges import check_flow, grid_edges
from pyg_topomask.graphs.graph import device_of
from pyg_topomask.ops.knn import check_positions, knn_graph
from pyg_topomask.transforms.base import GraphTransform, check_has_positions, check_single
from pyg_topomask.utils.checks import check_choice, check_flag, check_whole, checked_seed, described, is_whole
from pyg_topomask.utils.precision import widened


@functional_transform('topo_knn_graph')
class KNNGraph(GraphTransform):
    r"""Replaces the edges of a graph by edges to each node from its nearest neighbors in :obj:`pos` (functional name:
    :obj:`topo_knn_graph`). It does not need torch-cluster.

    The transform removes :obj:`edge_attr`, :obj:`edge_type`, :obj:`edge_weight`, :obj:`weight` of edges (if there were not as
    many as nodes) and :obj:`adj_t`. The edges are directed, see :func:`~pyg_topomask.ops.knn_graph`, unless
    :obj:`force_undirected` is set. As with PyG's :obj:`KNNGraph`, a batch cannot be divided by :obj:`to_data_list()`
    afterwards.

    Args:
        k (int): The number of neighbors. In graphs with at most this many nodes, each node has edges from all others.
            (default: :obj:`6`)
        loop (bool): Count each node as its own nearest neighbor. (default: :obj:`False`)
        force_undirected (bool): Also add the opposite directions. (default: :obj:`False`)
        flow (str): :obj:`"source_to_target"` for edges from the neighbors to the node, or :obj:`"target_to_source"` for edges
            from the node to its neighbors. (default: :obj:`"source_to_target"`)

    Shapes:
        - **input:** positions :obj:`pos` :math:`(|\mathcal{V}|, D)`
        - **output:** the graph, with edge indices :math:`(2, k |\mathcal{V}|)`, or fewer if there are at most :math:`k` nodes

    Example:
        >>> import torch
        >>> KNNGraph(k=1)(Data(pos=torch.tensor([[0.0], [1.0], [3.0]]))).edge_index
        tensor([[1, 0, 1],
                [0, 1, 2]])
    """

    def __init__(self, k: int = 6, loop: bool = False, force_undirected: bool = False, flow: str = 'source_to_target') -> None:
        check_whole(1, k=k)
        check_flow(flow)
        check_flag(loop=loop, force_undirected=force_undirected)
        self.k = k
        self.loop = loop
        self.force_undirected = force_undirected
        self.flow = flow

    def forward(self, data: Data) -> Data:
        check_has_positions(data)
        edge_index = knn_graph(data.pos, self.k, data.batch if 'batch' in data else None, self.loop, self.flow)
        of_edges = 'weight' in data and data.num_edges != data.num_nodes and data.is_edge_attr('weight')
        data.edge_index = to_undirected(edge_index, num_nodes=data.num_nodes) if self.force_undirected else edge_index
        for name in ('adj_t', 'edge_attr', 'edge_type', 'edge_weight', *['weight'] * of_edges):
            if name in data:
                del data[name]
        return data


ORIENTATIONS = ('outward', 'up')


@functional_transform('add_normals')
class AddNormals(GraphTransform):
    r"""Stores the normal of the surface through the nearest neighbors of each point as :obj:`normal` (functional name:
    :obj:`add_normals`), from `"Surface reconstruction from unorganized points" <https://doi.org/10.1145/133994.134011>`_ (Sec.
    3.2). The normal is the unit vector along which these neighbors vary least. It is zero if the neighbors coincide, and in
    three dimensions or more if they are on a line.

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
        check_flag(cat=cat)
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
    pos = widened(pos.detach())
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
    if 'edge_label_index' in data:
        raise ArgumentError('data', 'data with edge_label_index', 'data without it', 'apply RandomLinkSplit afterwards')
    return int(data.num_nodes or 0)


class _Sampling(GraphTransform):
    def __init__(self, num: int, seed: int = 0) -> None:
        check_whole(1, num=num)
        self.num = num
        self.seed = checked_seed(seed=seed)


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
            raise ArgumentError('data', described(data), 'tensors [C, L], [C, H, W] and [T, C, H, W]')
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
