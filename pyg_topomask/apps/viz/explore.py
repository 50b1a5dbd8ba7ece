r"""A page on which to look at masks."""

from __future__ import annotations

import html
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from torch_geometric.data import Data

from pyg_topomask.apps.viz.exploration import explored
from pyg_topomask.errors import ArgumentError
from pyg_topomask.graphs.graph import Graph
from pyg_topomask.masks import Mask
from pyg_topomask.utils.checks import check_whole
from pyg_topomask.utils.files import new_file, write_atomically

# The most bytes of a page, unless one node needs more.
_BYTES = 2_000_000


@dataclass(frozen=True, repr=False)
class Page:
    r"""A page in HTML, with all that it needs, which a notebook displays."""

    html: str

    def save(self, path: str | Path) -> None:
        r"""Writes the page to a file in a folder that exists."""
        write_atomically(new_file('path', path), self.html.encode())

    def _repr_html_(self) -> str:
        frame = 'width="100%" height="1100" style="border: 0" title="masks on a graph"'
        return f'<iframe srcdoc="{html.escape(self.html)}" {frame}></iframe>'

    def __repr__(self) -> str:
        return f'{type(self).__name__}({len(self.html)} characters of HTML; save(path) writes them)'


def explore(
    mask: Mask | Mapping[str, Mask],
    graph: Graph | Data,
    node: int | None = None,
    num_walks: Sequence[int] = (1, 4, 16, 64),
    num_nodes: int = 128,
    title: str = 'Masks on a graph',
    labels: Sequence[str] | None = None,
) -> Page:
    r"""Creates a page that shows masks on a graph, for any browser. Click a node of the graph to select its row. The page shows

    - the row of the selected node, as colors of the nodes and as a table: how much it attends to each node,
    - how far the mask looks: the share of the row at each distance, see :func:`~pyg_topomask.apps.diagnostics.weight_by_hops`,
    - for a :class:`~pyg_topomask.masks.GRFMask`, the exact row beside its estimate, and the relative error of the row,
      :math:`\lVert \hat{\mathbf{m}} - \mathbf{m} \rVert_2 / \lVert \mathbf{m} \rVert_2`,
    - the joint error of all rows for each number of walks, and about how many walks reduce it to 10 %.

    You choose the mask and its head. The page opens with the head whose row has the largest contrast. To compare kernels, or
    numbers of hops, give a mask for each. All numbers are computed in advance, on the whole graph. The page needs no network.

    Nodes are drawn on their grid if the data has a :obj:`grid_shape`, at their positions if it has :obj:`pos`, and where
    NetworkX puts them otherwise. For a batch, the page shows the graph of :obj:`node`. For a large graph, it shows the nodes
    nearest to :obj:`node`. The page has at most 2 megabytes.

    Args:
        mask (Mask or dict of str to Mask): The mask, or several masks by name.
        graph (Graph or torch_geometric.data.Data): The graphs.
        node (int, optional): The node that is selected at first. (default: :obj:`None`, one of the largest degree)
        num_walks (sequence of int): The numbers of walks to compare, in addition to that of the mask. Numbers above
            :math:`2^{23} / N`, and odd numbers for antithetic walkers, are left out. Walks are drawn with the seed of the mask,
            even if the data stores walks. (default: :obj:`(1, 4, 16, 64)`)
        num_nodes (int): The largest number of nodes to show. The page shows fewer nodes if it would otherwise be larger than
            2 megabytes, or take more than :math:`2^{30}` numbers to compute. (default: :obj:`128`)
        title (str): The title. (default: :obj:`"Masks on a graph"`)
        labels (sequence of str, optional): The names of all nodes of :obj:`graph`, in their order.
            (default: :obj:`None`, their numbers)

    Returns:
        Page: The page. :obj:`save(path)` writes it, :obj:`html` is its text, and a notebook displays it.

    Raises:
        ImportError: If NetworkX is not installed, for graphs without positions.
        ValueError: If there is no mask, the graph has no nodes, or an argument is outside its range.

    Example:
        >>> import torch
        >>> from pyg_topomask.masks import GRFMask
        >>> data = Data(edge_index=torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]), num_nodes=3)
        >>> page = explore(GRFMask(), data, node=0, labels=['ann', 'bob', 'eve'])
        >>> page.html[:15]  # page.save('mask.html') writes all of it
        '<!DOCTYPE html>'
    """
    masks = {type(mask).__name__: mask} if isinstance(mask, Mask) else mask
    if not isinstance(masks, Mapping) or not masks or not all(isinstance(each, Mask) for each in masks.values()):
        raise ArgumentError('mask', repr(mask), 'a Mask, and one or more masks by name in a dictionary')
    for number in num_walks:
        check_whole(1, num_walks=number)
    check_whole(1, num_nodes=num_nodes)
    graph = Graph.of(graph)
    if labels is not None and (isinstance(labels, str) or len(labels) != graph.num_nodes):
        given = f'{labels!r}' if isinstance(labels, str) else f'{len(labels)} names'
        raise ArgumentError('labels', given, f'{graph.num_nodes} names, one for each node')
    template = files('pyg_topomask.apps.viz').joinpath('explore.html').read_text(encoding='utf-8')
    while True:
        content = {'title': title} | explored(masks, graph, node, num_walks, num_nodes)
        num_nodes = len(content['nodes'])
        content['names'] = None if labels is None else [str(labels[shown]) for shown in content['nodes']]
        # Text in a script ends it where a browser reads "</script>".
        embedded = json.dumps(content, allow_nan=False).replace('<', '\\u003c')
        text = template.replace('/*TITLE*/', html.escape(title), 1).replace('/*CONTENT*/', embedded, 1)
        if len(text.encode()) <= _BYTES or num_nodes == 1:
            return Page(text)
        num_nodes = 3 * num_nodes // 4
