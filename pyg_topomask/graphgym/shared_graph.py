r"""The graph that layers share which are called with a batch, one after the other."""

from __future__ import annotations

import copy

from torch.nn import Module
from torch_geometric.data import Data

from pyg_topomask.graph import Graph

__all__ = ['shared_graph']

#: Where a batch keeps the graph that the layers of a forward pass share; beside its attributes, not among them.
_SHARED = '_topomask_graph'


def shared_graph(batch: Data, user: Module) -> Graph:
    r"""Returns the graph of a batch, the same for every layer of one forward pass.

    A layer that comes back has begun another forward pass, in which masks that draw anew have to.

    Args:
        batch (torch_geometric.data.Data): The batch.
        user (torch.nn.Module): The layer that asks.
    """
    kept: tuple[Graph | None, set[Module]] = batch.__dict__.pop(_SHARED, (None, set()))
    graph, users = kept
    if graph is None or graph.edge_index is not batch.edge_index or user in users:
        # Of a copy: a graph refers to its data, and a cycle would keep both alive after the step.
        graph, users = Graph.from_data(copy.copy(batch)), set()
    batch.__dict__[_SHARED] = (graph, users | {user})
    return graph
