r"""What the diagnostics of graph random features accept."""

from __future__ import annotations

from torch_geometric.data import Data

from pyg_topomask.graph import Graph
from pyg_topomask.masks import GRFMask

__all__ = ['as_graph', 'check_estimates']


def as_graph(graph: Graph | Data) -> Graph:
    return graph if isinstance(graph, Graph) else Graph.from_data(graph)


def check_estimates(mask: GRFMask) -> None:
    if not mask.walk_settings.importance:
        raise ValueError(
            'mask: got importance=False, which counts visits and estimates no function of the adjacency matrix; accepted are '
            'masks with importance=True'
        )
