r"""The forests of a graph on which masks are prepared, and how they are stored on data."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad
from torch_geometric.data import Data

from pyg_topomask.errors import ArgumentError
from pyg_topomask.graphs.forest import Forest
from pyg_topomask.graphs.graph import Graph
from pyg_topomask.graphs.sparse_pattern import stable_argsort
from pyg_topomask.graphs.stored import rows_to_store
from pyg_topomask.utils.functorch import kept, outside_transforms
from pyg_topomask.utils.precision import widened

_NAMES = ('forest_index', 'forest_round', 'forest_sizes')


@dataclass(frozen=True, eq=False)
class TreeState:
    r"""The forest of a graph, or several spanning forests as one, the nodes of the first forest first, and the length of the
    edge from each node to its parent, for a :class:`~pyg_topomask.masks.TreeMask`.
    """

    forest: Forest
    length: Tensor
    num_trees: int = 1
    _plans: dict[Hashable, Any] = field(default_factory=dict)
    #: The distances within graphs.
    cache: dict[Hashable, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, graph: Graph, forests: Sequence[Tensor] | None = None) -> TreeState:
        r"""Roots and contracts the forest of a graph, or several spanning forests with the edges :obj:`[2, F]`. Raises a
        :class:`ValueError` if there is a cycle.
        """
        if forests is None:
            return cls._measured(graph, graph.cached_of_edges('forest', partial(_rooted, graph, [graph.edge_index])), 1)
        return cls._measured(graph, _rooted(graph, forests), len(forests))

    @classmethod
    def _measured(cls, graph: Graph, forest: Forest, num_trees: int) -> TreeState:
        weight = graph.edge_weight
        if weight is not None:
            weight = widened(weight).repeat(num_trees)
        return cls(forest, forest.lengths(repeated_edges(graph, num_trees), weight), num_trees)

    @cached_property
    def longest_path(self) -> float:
        return self.forest.longest_path(self.length)

    @cached_property
    def shortest(self) -> float:
        return float(self.length.detach().min()) if self.length.numel() > 0 else 0.0

    @property
    @outside_transforms
    def diameter(self) -> int:
        r"""The largest number of hops between nodes of a tree."""
        return self.forest.diameter

    @property
    def distances(self) -> Tensor:
        r"""All numbers of hops between nodes of a tree, :obj:`[diameter + 1]`."""
        return torch.arange(self.diameter + 1, device=self.length.device)

    def plan(self, name: str, make: Callable[[Forest, torch.device], Any]) -> Any:
        r"""Returns the plan of a multiplication method, computed at the first call."""
        if name not in self._plans:
            self._work_out(name, make)
        return self._plans[name]

    @torch.compiler.disable  # torch.compile would read NumPy as Python
    def _work_out(self, name: str, make: Callable[[Forest, torch.device], Any]) -> None:
        kept(self._plans, name, lambda: make(self.forest, self.length.device))

    def store(self, data: Data) -> None:
        r"""Stores the forest on the data of one graph, in a form that PyG batches and slices correctly."""
        graph, forest = Graph.from_data(data), self.forest
        stored = rows_to_store(forest.num_nodes, graph.num_nodes, graph.num_edges)
        padding = (0, stored - forest.num_nodes)
        index = np.stack([forest.parent, forest.up, forest.down]) % max(graph.num_nodes, 1)
        data.forest_index = pad(torch.from_numpy(index).to(graph.device), padding)
        data.forest_round = pad(torch.from_numpy(forest.round).to(graph.device), padding)
        data.forest_sizes = torch.tensor([[*graph.structure[0].tolist(), stored, self.num_trees]], device=graph.device)

    @classmethod
    def load(cls, graph: Graph) -> TreeState | None:
        r"""Returns the forest stored on the data of :obj:`graph`, or :obj:`None`. Raises a :class:`ValueError` if the data has
        changed since the forest was stored.
        """
        stored = {name: graph.get(name) for name in _NAMES}
        missing = [name for name, value in stored.items() if value is None]
        if len(missing) == len(_NAMES):
            return None
        index, taken, sizes = stored.values()
        if missing or sizes.size(-1) != 5:
            got = f'a stored forest without {missing}' if missing else 'a forest stored by an earlier version'
            raise ArgumentError('data', got, 'a complete one', 'run AddForest again')
        fingerprint, num_stored, num_trees = sizes.view(-1, 5).split([3, 1, 1], dim=1)
        total = int(num_stored.sum())
        if not torch.equal(fingerprint, graph.structure) or {index.size(1), taken.numel()} != {total}:
            num_nodes, num_edges, _ = fingerprint.sum(0).tolist()
            raise ArgumentError(
                'data',
                f'a stored forest of {num_nodes} nodes and {num_edges} edges',
                f'one of this graph of {graph.num_nodes} nodes and {graph.num_edges} edges',
                'it has changed since: run AddForest again, or AddSpanningForest, after the transforms that change it',
            )
        least, most = (int(bound) for bound in num_trees.aminmax())
        if least < most:
            raise ArgumentError('data', f'graphs with {least} to {most} stored forests', 'equal numbers of them')
        counts = torch.stack([most * fingerprint[:, 0], num_stored[:, 0] - most * fingerprint[:, 0]], dim=1).flatten().cpu()
        kept = torch.tensor([True, False]).repeat(len(fingerprint)).repeat_interleave(counts)
        # Of each graph the first forest, of each graph the second, and so on.
        tree = torch.arange(most).repeat(len(fingerprint)).repeat_interleave(fingerprint[:, 0].cpu().repeat_interleave(most))
        order = stable_argsort(tree, most)
        parent, up, down = (index.cpu()[:, kept] + tree * graph.num_nodes)[:, order].numpy()
        return cls._measured(graph, Forest(parent, up, down, taken.cpu()[kept][order].numpy()), most)


def _rooted(graph: Graph, forests: Sequence[Tensor]) -> Forest:
    edges = torch.cat([edge_index + tree * graph.num_nodes for tree, edge_index in enumerate(forests)], dim=1)
    return Forest.from_edges(edges, len(forests) * graph.num_nodes)


class TreeFactors(NamedTuple):
    r"""What the mask of each head is made of, in float64: for :math:`\exp(a \, \mathrm{dist})` the factors of edges on the way
    up and down, :obj:`[H, N]`; for other functions of the distance ones, :obj:`[1, N]`, and the function.

    Args:
        order (torch.Tensor): The nodes, see :func:`~pyg_topomask.machine.tree.preorder`.
        above (torch.Tensor): The places of their parents.
        decay (torch.Tensor): :math:`e^{a \ell}` of the edge above each node, in this order.
        gain (torch.Tensor): :math:`1 - e^{2 a \ell}`.
        f (torch.Tensor): The function, :obj:`[H, L + 1]`: numbers that differ between distances, and one that is added to all.
            :obj:`[H, 0]` for exponential functions.
    """

    order: Tensor
    above: Tensor
    decay: Tensor
    gain: Tensor
    f: Tensor

    @classmethod
    def of_exponent(cls, order: Tensor, above: Tensor, a: Tensor, length: Tensor) -> TreeFactors:
        exponent = torch.outer(a.detach().double(), length.detach().double().index_select(0, order))
        return cls(order, above, exponent.exp(), -(2 * exponent).expm1(), exponent.new_empty(a.numel(), 0))

    @classmethod
    def of_function(cls, order: Tensor, above: Tensor, f: Tensor) -> TreeFactors:
        ones = torch.ones(1, order.numel(), dtype=torch.float64).expand(f.size(0), -1)
        return cls(order, above, ones, ones, f.detach().double())


def repeated_edges(graph: Graph, num_trees: int) -> Tensor:
    r"""Returns the edges of several copies of a graph, the edges of the first copy first, :obj:`[2, num_trees * E]`."""
    first = graph.num_nodes * torch.arange(num_trees, device=graph.device).view(-1, 1)
    return (graph.edge_index.long().unsqueeze(1) + first).flatten(1)
