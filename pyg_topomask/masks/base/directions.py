r"""What masks do with the direction of edges, and with weights that are learned."""

from __future__ import annotations

from typing import Any

import torch

from pyg_topomask.errors import warn
from pyg_topomask.graphs.graph import Graph

#: What a mask does with the direction of edges, by the word in its :obj:`repr`.
DIRECTIONS = {
    'followed': 'A node attends to nodes from which edges lead to it. The argument flow reverses this.',
    'both ways': 'Walks go against the edges, and nodes whose walks meet attend to each other. Attention has no direction.',
    'undirected': 'An edge counts in both directions, even if only one is given.',
    'symmetric': 'Each edge must be given in both directions, with equal weights. Other graphs raise an error.',
    'counted': 'The degrees of the nodes count the incoming edges, and attention follows no edge. The argument flow decides.',
    'unused': 'The mask reads no edges.',
}

#: The masks that hand gradients on to edge weights, for errors.
LEARNS_WEIGHTS = 'AdjacencyMask, PowerSeriesMask, HeatKernelMask, GRFMask, TreeMask(kind="exp"), and compositions with them'


def warn_of_directed(mask: Any, graph: Graph, instead: str) -> None:
    r"""Warns once for each mask whose matrix has no direction, if the graph has one. Names the mask that follows edges."""
    if mask.told_of_direction or torch.compiler.is_compiling() or not graph.segments.is_whole:
        return
    if graph.is_directed:
        mask.told_of_direction = True
        warn(
            f'edge_index: got a directed graph for {type(mask).__name__}, whose attention has no direction: nodes whose walks '
            f'meet attend to each other. {instead} follows the edges; ToUndirected() of PyG gives a graph without directions.'
        )


def warn_of_lost_gradient(mask: Any, graph: Graph) -> None:
    r"""Warns once for each mask that edge weights require a gradient, which the mask does not hand on to them."""
    weight = graph.edge_weight
    if weight is None or not weight.requires_grad or mask.told_of_gradient or torch.compiler.is_compiling():
        return
    mask.told_of_gradient = True
    warn(
        f'edge_weight: got weights that require a gradient, which {type(mask).__name__} does not hand on to them. '
        f'These masks do: {LEARNS_WEIGHTS}. Detach weights that are not learned.'
    )
