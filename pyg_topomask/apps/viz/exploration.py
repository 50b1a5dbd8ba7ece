r"""What a page shows of masks on a graph: rows, errors and distances, computed here and only drawn there."""

from __future__ import annotations

import base64
import gzip
import math
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from scipy.sparse import csr_matrix, vstack
from torch import Tensor
from torch_geometric.utils import remove_self_loops, subgraph

from pyg_topomask.apps.diagnostics.grf_rows import estimated_rows, exact_rows
from pyg_topomask.apps.diagnostics.hops import attention_flow, hop_distances, shares_by_hops
from pyg_topomask.apps.diagnostics.rows import rows_of
from pyg_topomask.apps.viz.layout import positions
from pyg_topomask.apps.viz.neighborhood import neighborhood
from pyg_topomask.graphs.graph import Graph
from pyg_topomask.masks import GRFMask, Mask
from pyg_topomask.operators.base import MaskOperator
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
    r"""Returns the edges between the nodes that are shown, by their place among these, each pair once on undirected graphs."""
    ends, weight = remove_self_loops(graph.edge_index.long(), graph.weight.detach().abs())
    ends, weight = subgraph(nodes, ends, weight, relabel_nodes=True, num_nodes=graph.num_nodes)
    pairs = dict(zip(map(tuple, ends.t().tolist()), weight.tolist(), strict=True))
    directed = any((j, i) not in pairs for i, j in pairs)
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
