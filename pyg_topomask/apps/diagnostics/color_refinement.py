r"""Color refinement: the nodes and graphs that the Weisfeiler-Lehman test distinguishes, with and without encodings."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.utils import lexsort

from pyg_topomask.errors import ArgumentError
from pyg_topomask.graphs.graph import Graph
from pyg_topomask.utils.checks import check_batch, check_whole


def color_refinement(
    edge_index: Tensor,
    num_nodes: int,
    colors: Tensor | None = None,
    edge_colors: Tensor | None = None,
    batch: Tensor | None = None,
    max_iterations: int | None = None,
) -> Tensor:
    r"""Refines a node coloring until it is stable, with the 1-WL test or, if :obj:`batch` is given, the SEG-WL test of the
    GraphGPS framework, from the thesis "Bringing k-MIP Attention to Graph Transformers" (Def. 5, Eq. 3.23; Def. 8, Theorem 12).
    A step of the 1-WL test is

    .. math::
        c^{(l)}(v) = \tau \left( c^{(l-1)}(v), \{\!\{ (c^{(l-1)}(u), e_{uv}) : (u, v) \in \mathcal{E} \}\!\} \right)

    The SEG-WL test uses the colors of all nodes :math:`u` of the graph, whether :math:`(u, v)` is an edge, the color of the
    edge, and whether :math:`u = v`. This is the step above with distinguished self-loops, plus the multiset of all colors of
    the graph. For any other encoding of pairs, pass all pairs as edges and the encoding as their colors.

    Colors are exact, without hashing, and do not depend on the order of the nodes. To compare graphs, refine them in one
    batch. Otherwise, their colors are not comparable. A step takes :math:`O(|\mathcal{E}| \log |\mathcal{E}|)`.

    Args:
        edge_index (torch.Tensor): The edges, :obj:`[2, E]`; parallel edges count with their multiplicity.
        num_nodes (int): The number of nodes.
        colors (torch.Tensor, optional): The initial colors, features :obj:`[N, F]` or numbers :obj:`[N]`. They are compared
            exactly, so round floating point numbers. (default: :obj:`None`, all equal)
        edge_colors (torch.Tensor, optional): Colors of the edges, :obj:`[E, F]` or :obj:`[E]`. (default: :obj:`None`)
        batch (torch.Tensor, optional): The graph of each node, :obj:`[N]`, for the SEG-WL test. (default: :obj:`None`)
        max_iterations (int, optional): The largest number of steps. (default: :obj:`None`)

    Returns:
        torch.Tensor: Colors, counted from 0, :obj:`[N]`.

    Raises:
        ValueError: If the tensors do not fit each other, or :obj:`max_iterations` is negative.

    Example:
        >>> path = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
        >>> color_refinement(path, num_nodes=3)
        tensor([0, 1, 0])
    """
    source, target = Graph.from_tensors(edge_index, num_nodes).edge_index.long()
    max_iterations = num_nodes if max_iterations is None else max_iterations
    check_whole(0, max_iterations=max_iterations)
    color = _first_colors('colors', colors, num_nodes, edge_index.device)
    label = _first_colors('edge_colors', edge_colors, source.numel(), edge_index.device)
    if batch is not None:
        check_batch(batch, num_nodes)
        batch = batch.long()
        label = 2 * label + (source == target).long()
        num_graphs = int(batch.max()) + 1 if num_nodes > 0 else 0
    for _ in range(max_iterations):
        keys = [color, _number_multisets(target, _number(torch.stack([color[source], label])), num_nodes)]
        if batch is not None:
            keys.append(_number_multisets(batch, color, num_graphs)[batch])
        refined = _number(torch.stack(keys))
        # Numbers keep the order of the old colors. They stay the same if no color was split.
        if torch.equal(refined, color):
            break
        color = refined
    return color


def wl_equivalent(
    first: Data, second: Data, attrs: Sequence[str] = (), edge_attrs: Sequence[str] = (), max_iterations: int | None = None
) -> bool:
    r"""Returns whether color refinement gives two graphs equal multisets of colors. No message passing network can then
    distinguish them. If :obj:`attrs` contains all features and encodings, no instance of the GraphGPS framework can either
    (thesis "Bringing k-MIP Attention to Graph Transformers", Def. 6, Theorem 12).

    Args:
        first (torch_geometric.data.Data): A graph.
        second (torch_geometric.data.Data): Another graph.
        attrs (sequence of str): The node attributes that define the initial colors. Their rows are compared exactly.
            (default: :obj:`()`, all nodes equal)
        edge_attrs (sequence of str): The edge attributes that define the colors of edges. (default: :obj:`()`)
        max_iterations (int, optional): The largest number of steps. (default: :obj:`None`)

    Raises:
        ValueError: If a graph lacks an attribute.

    Example:
        >>> from torch_geometric.utils import to_undirected
        >>> hexagon = Data(edge_index=to_undirected(torch.tensor([[0, 1, 2, 3, 4, 5], [1, 2, 3, 4, 5, 0]])), num_nodes=6)
        >>> triangles = Data(edge_index=to_undirected(torch.tensor([[0, 1, 2, 3, 4, 5], [1, 2, 0, 4, 5, 3]])), num_nodes=6)
        >>> wl_equivalent(hexagon, triangles)
        True
    """
    graphs = first, second
    sizes = [int(data.num_nodes or 0) for data in graphs]
    edges = [Graph.from_data(data).edge_index for data in graphs]
    colors = color_refinement(
        torch.cat([edges[0], edges[1] + sizes[0]], dim=1),
        sum(sizes),
        _rows(graphs, attrs, 'attrs', sizes),
        _rows(graphs, edge_attrs, 'edge_attrs', [edge.size(1) for edge in edges]),
        max_iterations=max_iterations,
    )
    return torch.equal(*(color.sort().values for color in colors.split(sizes)))


def _rows(graphs: Sequence[Data], names: Sequence[str], argument: str, sizes: Sequence[int]) -> Tensor | None:
    columns = []
    for name in names:
        if any(name not in data for data in graphs):
            raise ArgumentError(argument, f'{name!r}, which a graph lacks', 'attributes of both')
        for data, size in zip(graphs, sizes, strict=True):
            if data[name].shape[:1] != (size,):
                raise ArgumentError(argument, f'{name!r} of shape {tuple(data[name].shape)}', f'[{size}, ...]')
        first, second = (data[name].unsqueeze(1).flatten(1) for data in graphs)
        if first.size(1) != second.size(1):
            raise ArgumentError(argument, f'{name!r} with {first.size(1)} and {second.size(1)} columns', 'equal numbers')
        rows = torch.cat([first, second])
        columns.append(_number(rows.t()))  # separately, because data types may differ
    return torch.stack(columns, dim=1) if columns else None


def _first_colors(name: str, values: Tensor | None, count: int, device: torch.device) -> Tensor:
    if values is None:
        return torch.zeros(count, dtype=torch.long, device=device)
    if values.dim() not in (1, 2) or values.size(0) != count:
        raise ArgumentError(name, f'shape {tuple(values.shape)}', f'[{count}] and [{count}, features]')
    return _number(values.to(device).unsqueeze(0) if values.dim() == 1 else values.to(device).t())


def _number(keys: Tensor) -> Tensor:
    r"""Numbers the distinct columns from 0, sorted by the first key, then by the second, and so on."""
    if keys.numel() == 0:
        return torch.zeros(keys.size(1), dtype=torch.long, device=keys.device)
    return torch.unique(keys, dim=1, return_inverse=True)[1]


def _number_multisets(owner: Tensor, element: Tensor, count: int) -> Tensor:
    r"""Numbers the owners by their multisets of elements, -1 for empty multisets, :obj:`[count]`.

    A multiset is a sorted list. Neighbors in the lists are replaced by the number of the pair, until lists have one entry.
    """
    order = lexsort([element, owner])
    owner, element = owner[order], element[order]
    while True:
        place = torch.arange(owner.numel(), device=owner.device) - torch.searchsorted(owner, owner)
        if not bool((place > 0).any()):
            break
        even = place % 2 == 0
        second = torch.full_like(element, -1)
        second[:-1] = torch.where(even[1:], -1, element[1:])
        element, owner = _number(torch.stack([element[even], second[even]])), owner[even]
    return torch.full((count,), -1, dtype=torch.long, device=owner.device).index_copy_(0, owner, element)
