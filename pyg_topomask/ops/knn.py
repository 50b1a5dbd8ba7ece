r"""Exact nearest neighbors within each graph."""

from __future__ import annotations

import scipy
import torch
from torch import Tensor

from pyg_topomask.errors import ArgumentError
from pyg_topomask.graphs.edges import row_and_col
from pyg_topomask.graphs.segments import by_width
from pyg_topomask.utils.checks import check_batch, check_whole, described
from pyg_topomask.utils.precision import wide_dtype, widened

# Graphs up to this size are searched in batches. For larger graphs, a tree per graph is faster on a CPU.
_SMALL = 64
# The number of distances in memory at a time.
_BLOCK = 2**25


def knn_graph(pos: Tensor, k: int, batch: Tensor | None = None, loop: bool = False, flow: str = 'source_to_target') -> Tensor:
    r"""Connects each node to its :math:`k` nearest neighbors within its graph, by Euclidean distance.

    Row 0 contains the neighbors, the nearest first, and row 1 the node, as in :func:`torch_geometric.nn.knn_graph`: a node
    attends to its neighbors. In graphs with at most :math:`k` nodes, each node is connected to all others. The choice between
    equally distant nodes depends only on their graph and the device.

    On a CPU, large graphs take :math:`O(N \log N)`. For small graphs, and on other devices, the search compares all pairs of
    nodes of a graph, in blocks of bounded memory.

    Args:
        pos (torch.Tensor): The positions, :obj:`[N, D]`. No gradient flows through the choice of neighbors.
        k (int): The number of neighbors.
        batch (torch.Tensor, optional): The graph of each node, ascending, :obj:`[N]`. (default: :obj:`None`, one graph)
        loop (bool): Count each node as its own nearest neighbor. (default: :obj:`False`)
        flow (str): :obj:`"source_to_target"` for edges from the neighbors to the node, or :obj:`"target_to_source"` for
            the reverse. (default: :obj:`"source_to_target"`)

    Returns:
        torch.Tensor: The edge indices, :obj:`[2, E]`, in the order of the nodes, with :math:`E = kN` unless a graph has
        too few nodes.

    Raises:
        ValueError: If a shape or data type does not fit, :obj:`k` is below 1, a position is not finite or too large to be
            squared, or :obj:`batch` is not ascending.

    Example:
        >>> knn_graph(torch.tensor([[0.0], [1.0], [3.0]]), k=1)
        tensor([[1, 0, 1],
                [0, 1, 2]])
    """
    check_positions(pos)
    check_whole(1, k=k)
    if batch is not None:
        check_batch(batch, pos.size(0))
    num_nodes = pos.size(0)
    pos = widened(pos.detach())
    graph = torch.zeros(num_nodes, dtype=torch.long, device=pos.device) if batch is None else batch
    count = graph.unique_consecutive(return_counts=True)[1]
    first = count.cumsum(0) - count
    num_others = min(k - loop, int(count.max()) - 1) if num_nodes > 0 else 0
    node = torch.arange(num_nodes, device=pos.device).unsqueeze(1)
    neighbor = node.new_full((num_nodes, num_others), -1)
    if num_others > 0:
        # The method depends on the size of the graph, so that its neighbors do not depend on the batch.
        tree = (count > _SMALL) & (pos.device.type == 'cpu')
        small = (~tree & (count > 1)).nonzero().squeeze(1)
        for width, places in by_width(count[small]):
            _search_pairs(pos, first[small[places]], count[small[places]], width, neighbor)
        for start, num in zip(first[tree].tolist(), count[tree].tolist(), strict=True):
            _search_tree(pos[start : start + num], start, neighbor[start : start + num])
    if loop:
        neighbor = torch.cat([node, neighbor], dim=1)
    present = neighbor >= 0
    return torch.stack(row_and_col(torch.stack([node.expand_as(neighbor)[present], neighbor[present]]), flow))


def _search_pairs(pos: Tensor, first: Tensor, count: Tensor, width: int, neighbor: Tensor) -> None:
    r"""Writes the neighbors in graphs of at most :obj:`width` nodes, comparing all pairs of nodes of a graph."""
    slot = torch.arange(width, device=pos.device)
    num = min(neighbor.size(1), width - 1)
    graphs = max(1, _BLOCK // width**2)
    queries = max(1, _BLOCK // (min(graphs, len(first)) * width))
    for start, size in zip(first.split(graphs), count.split(graphs), strict=True):
        # Slots beyond a graph contain nodes of other graphs, at infinite distance.
        index = (start.unsqueeze(1) + slot).clamp(max=pos.size(0) - 1)
        filled = slot < size.unsqueeze(1)
        points = pos[index]
        for query in slot[: int(size.max())].split(queries):
            distance = torch.cdist(points[:, query], points, compute_mode='donot_use_mm_for_euclid_dist')
            distance.masked_fill_(~filled.unsqueeze(1) | (query.unsqueeze(1) == slot), torch.inf)
            distance, nearest = distance.topk(num, largest=False)
            nearest = (start.view(-1, 1, 1) + nearest).masked_fill(distance.isinf(), -1)
            asked = filled[:, query]
            neighbor[index[:, query][asked], :num] = nearest[asked]


def _search_tree(pos: Tensor, start: int, neighbor: Tensor) -> None:
    r"""Writes the neighbors in one graph, whose first node is :obj:`start`."""
    points, num_nodes = pos.double().numpy(), pos.size(0)
    num = min(neighbor.size(1), num_nodes - 1)
    nearest = torch.from_numpy(scipy.spatial.cKDTree(points).query(points, num + 1)[1])
    # Each node finds itself, unless many others have the same position. Then the farthest result is dropped.
    itself = nearest == torch.arange(num_nodes).unsqueeze(1)
    itself[:, -1] |= ~itself.any(dim=1)
    neighbor[:, :num] = nearest[~itself].view(num_nodes, num) + start


def check_positions(pos: Tensor) -> None:
    r"""Raises a :class:`ValueError` unless these are positions :obj:`[N, D]` whose distances are finite."""
    if pos.dim() != 2 or pos.size(1) < 1 or not pos.is_floating_point():
        raise ArgumentError('pos', described(pos), 'floating point numbers of shape [N, D]')
    largest = (torch.finfo(wide_dtype(pos)).max / pos.size(1)) ** 0.5 / 4
    outside = ~(pos.abs() <= largest)
    if bool(outside.any()):
        raise ArgumentError('pos', float(pos[outside][0]), f'numbers of at most {largest:.1e} in absolute value')
