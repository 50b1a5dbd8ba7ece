r"""A page on which to look at masks: rows, errors and distances, computed here and only drawn there."""

from __future__ import annotations

import base64
import gzip
import html
import json
import math
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.sparse import csr_matrix, vstack
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.utils import coalesce, remove_self_loops, subgraph

from pyg_topomask.apps.diagnostics.measured import estimated_rows, exact_rows
from pyg_topomask.apps.diagnostics.rows import attention_flow, hop_distances, rows_of, shares_by_hops
from pyg_topomask.apps.viz.drawing import neighborhood, positions
from pyg_topomask.errors import ArgumentError
from pyg_topomask.graphs.graph import Graph
from pyg_topomask.masks import GRFMask, Mask
from pyg_topomask.operators.base import MaskOperator
from pyg_topomask.utils.checks import check_whole
from pyg_topomask.utils.files import new_file, write_atomically
from pyg_topomask.walks.steps import SAMPLERS

# The most numbers in the rows of a page, the most that are computed for them, and the most visits of an ensemble of walks.
_NUMBERS = 2**21
_COMPUTED = 2**30
_VISITS = 2**23
# Numbers in the rows that are computed at once.
_AT_ONCE = 2**24
# The largest distance that is told apart.
_MAX_HOPS = 8
# The error of the recommended walks.
_TARGET = 0.1


@torch.no_grad()
def explored(
    masks: Mapping[str, Mask],
    graph: Graph,
    node: int | None,
    num_walks: Sequence[int],
    num_nodes: int,
) -> dict[str, Any]:
    r"""Returns the content of a page, as JSON can hold it, see :func:`~pyg_topomask.apps.viz.explore`."""
    walks = {name: _walks(mask, num_walks, _VISITS // max(graph.num_nodes, 1)) for name, mask in masks.items()}
    size = sum(mask.heads * (1 + len(walks[name])) for name, mask in masks.items())
    shown = max(1, min(num_nodes, math.isqrt(_NUMBERS // size), _COMPUTED // (size * max(graph.num_nodes, 1))))
    near = neighborhood(graph, node, shown).to(graph.device)
    index = int(graph.segments.index[near[0]])
    whole = int(graph.segments.sizes[index]) <= shown
    nodes = (graph.segments.index == index).nonzero().squeeze(1) if whole else near
    distances = {
        flow: hop_distances(graph, nodes, _MAX_HOPS, flow) for flow in sorted({attention_flow(mask) for mask in masks.values()})
    }
    chosen = nodes.tolist().index(int(near[0]))
    return {
        'chosen': chosen,
        'nodes': nodes.tolist(),
        'graph': {
            'index': index,
            'graphs': graph.num_graphs,
            'nodes': int(graph.segments.sizes[index]),
            'edges': int((graph.segments.index[graph.edge_index[0].long()] == index).sum()),
        },
        'positions': positions(graph, nodes).round(decimals=6).tolist(),
        **_edges(graph, nodes),
        'distances': {flow: _array(hops[:, nodes]) for flow, hops in distances.items()},
        'max_hops': _MAX_HOPS,
        'target': _TARGET,
        'masks': [
            {'name': name, 'text': repr(mask)}
            | _explored(mask, walks[name], graph, nodes, chosen, distances[attention_flow(mask)])
            for name, mask in masks.items()
        ],
    }


def _edges(graph: Graph, nodes: Tensor) -> dict[str, Any]:
    r"""Returns the edges between the nodes that are shown, by their place among these, each pair once on undirected graphs.
    Parallel edges add up. Edges whose directions differ in weight are directed.
    """
    ends, weight = remove_self_loops(graph.edge_index.long(), graph.weight.detach().abs())
    ends, weight = subgraph(nodes, ends, weight, relabel_nodes=True, num_nodes=graph.num_nodes)
    ends, weight = coalesce(ends, weight)
    pairs = dict(zip(map(tuple, ends.t().tolist()), weight.tolist(), strict=True))
    # Sums and learned weights of both directions may differ by rounding.
    directed = any(not math.isclose(pairs.get((j, i), -1.0), weight, rel_tol=1e-6) for (i, j), weight in pairs.items())
    kept = {pair: weight for pair, weight in pairs.items() if directed or pair[0] < pair[1]}
    weighted = len(set(kept.values())) > 1
    return {'edges': [*kept], 'weights': [*kept.values()] if weighted else None, 'directed': directed}


def _walks(mask: Mask, num_walks: Sequence[int], most: int) -> list[int]:
    r"""Returns the numbers of walks to compare, or none for a mask whose walks do not estimate an exact one."""
    if not isinstance(mask, GRFMask) or not mask.walk_settings.importance or mask.stitch > 1:
        return []
    even = SAMPLERS[mask.walk_settings.sampler].paired
    return sorted(
        {number for number in num_walks if number <= most and not (even and number % 2)} | {mask.walk_settings.num_walks}
    )


def _explored(mask: Mask, walks: list[int], graph: Graph, nodes: Tensor, place: int, distances: Tensor) -> dict[str, Any]:
    r"""Returns the rows of a mask, what share of each lies at which distance, and for numbers of walks the estimates and their
    errors. Errors and shares are those of whole rows, also of the nodes that are not shown. The head to show first is the one
    with the largest contrast in the row of the node at a place.
    """
    mask = deepcopy(mask).to(graph.device).eval()
    if isinstance(mask, GRFMask) and walks:
        # Walks that a transform has stored would be the same for any number.
        graph = Graph(graph.edge_index, graph.num_nodes, graph.edge_weight, graph.batch, graph.num_graphs)
        own, matrices = mask.walk_settings, [exact_rows(mask, graph, nodes)]
        for number in walks:
            mask.walk_settings = replace(own, num_walks=number)
            matrices.append(estimated_rows(mask, graph, nodes))
    else:
        matrices = [_rows(mask(graph), nodes)]
    alike = all((head != matrices[0][0]).nnz == 0 for head in matrices[0])
    names = ['all alike' if len(matrices[0]) > 1 else '1'] if alike else [f'{head + 1}' for head in range(len(matrices[0]))]
    # [1 + walks, heads, rows, ...]
    sizes = len(matrices), len(names)
    heads = [matrix for each in matrices for matrix in each[: len(names)]]
    columns = nodes.cpu().numpy()
    every = torch.from_numpy(np.stack([head[:, columns].toarray() for head in heads])).unflatten(0, sizes)
    share = torch.stack([_shares(head, distances) for head in heads]).unflatten(0, sizes)
    # Rows without weight have no shares.
    means = share[0].sum(1) / (share[0].sum(2) > 0).sum(1, keepdim=True).clamp(min=1)
    content = {
        'heads': names,
        'first': max(range(len(names)), key=lambda head: _contrast(every[0, head, place], place)),
        'walks': walks,
        'flow': attention_flow(mask),
        'rows': _array(every),
        'shares': _array(share),
        'mean_shares': _array(means),
        'reach': means.mean(0).tolist(),
    }
    if not walks:
        return content
    exact, *estimates = (each[: len(names)] for each in matrices)
    deviations = [*exact, *(head - of for estimate in estimates for head, of in zip(estimate, exact, strict=True))]
    norms = [np.asarray(deviation.multiply(deviation).sum(1)).ravel() for deviation in deviations]
    square = torch.from_numpy(np.stack(norms)).unflatten(0, sizes)
    total = square.sum(2)
    errors = (total[1:] / total[0]).sqrt()
    return content | {
        'own': walks.index(own.num_walks),
        'row_errors': _array((square[1:] / square[0]).sqrt()),
        'errors': _array(errors),
        'enough': [walks_for(curve, walks) for curve in errors.t().tolist()],
    }


def _contrast(row: Tensor, place: int) -> float:
    r"""Returns how much the entries of a row differ that are not 0, except that of a place, relative to the largest of them."""
    entries = row[(row != 0) & (torch.arange(row.numel()) != place)].double()
    return float(entries.std(correction=0) / entries.abs().max()) if entries.numel() > 0 else -1.0


def _rows(operator: MaskOperator, nodes: Tensor) -> list[csr_matrix]:
    size = max(1, _AT_ONCE // (operator.heads * operator.segments.num_nodes))
    blocks = [rows_of(operator, chosen).double().cpu().numpy() for chosen in nodes.split(size)]
    return [vstack([csr_matrix(block[head]) for block in blocks], format='csr') for head in range(operator.heads)]


def _shares(rows: csr_matrix, distances: Tensor) -> Tensor:
    reached = np.unique(rows.indices)
    return shares_by_hops(torch.from_numpy(rows[:, reached].toarray())[None], distances.cpu()[:, reached], _MAX_HOPS)[0]


def walks_for(errors: Sequence[float], walks: Sequence[int]) -> int | None:
    r"""Returns about how many walks bring an error down to 0.1: between the numbers of walks, ascending, for which it was
    measured by a straight line on logarithmic axes, beyond the largest by the root of the number of walks. The result is
    :obj:`None` if an error is not a number.

    Example:
        >>> walks_for([0.8, 0.4, 0.2], [1, 4, 16])
        64
    """
    if not all(map(math.isfinite, errors)):
        return None
    below = next((place for place, error in enumerate(errors) if error <= _TARGET), None)
    if below is None:
        return math.ceil(walks[-1] * (errors[-1] / _TARGET) ** 2 - 1e-6)
    if below == 0:
        return walks[0]
    ends = slice(below - 1, below + 1)
    x, y = np.log(walks[ends]), np.log(np.maximum(errors[ends], 1e-12))
    return math.ceil(math.exp(np.interp(-math.log(_TARGET), -y, x)) - 1e-6)


def _array(values: Tensor) -> dict[str, Any]:
    r"""Returns a tensor as JSON can hold it: its shape, and its numbers in float32, compressed, as base64."""
    numbers = values.detach().cpu().numpy().astype('<f4')
    return {'shape': list(numbers.shape), 'data': base64.b64encode(gzip.compress(numbers.tobytes(), mtime=0)).decode()}


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
        text = template.replace('/*CONTENT*/', embedded, 1).replace('/*TITLE*/', html.escape(title), 1)
        if len(text.encode()) <= _BYTES or num_nodes == 1:
            return Page(text)
        num_nodes = 3 * num_nodes // 4
