r"""The nodes and edges of one process."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from contextlib import AbstractContextManager
from functools import wraps
from typing import ParamSpec, TypeVar, cast

import torch
from torch import Tensor

from pyg_topomask.distributed.communication import Processes
from pyg_topomask.distributed.halo import ExtendedGraph, Halo, Numbered
from pyg_topomask.distributed.storage import Storage
from pyg_topomask.errors import ArgumentError
from pyg_topomask.graphs.graph import Graph
from pyg_topomask.graphs.segments import Segments

P = ParamSpec('P')
Value = TypeVar('Value')

#: How many unions of halos, and how many copies of the edges on them, are kept: masks that draw new walks, and searches, have a
#: new halo in every step.
_UNIONS, _EDGES = 32, 4


class ShardSegments(Segments):
    r"""The nodes of one process. They belong to one graph."""

    is_whole = False

    def __init__(self, graph: Shard, num_nodes: int, device: torch.device) -> None:
        super().__init__(num_nodes, device=device)
        self.shard = graph

    @property
    def group(self) -> Processes:
        return self.shard.group

    def __repr__(self) -> str:
        return repr(self.shard)

    @property
    def position(self) -> Tensor:
        return self.shard.original(torch.arange(self.num_nodes, device=self.device) + self.shard.first)

    def _measured(self) -> tuple[int, int]:
        return self.shard.total_nodes, self.shard.total_nodes**2

    def maximum(self, x: Tensor) -> Tensor:
        largest: Tensor = self.shard.group.maximum(x.amax(0, keepdim=True))
        return largest.expand_as(x)

    def total(self, x: Tensor) -> Tensor:
        total: Tensor = self.shard.group.sum(x)
        return total


class Shard(Graph, Numbered):
    r"""The nodes of this process, and their incoming edges. The ids of the nodes of a process are consecutive. A partition can
    give a node another id than its number in the whole graph.

    Args:
        group (Processes): The processes.
        offsets (torch.Tensor): The first id of each process, and :math:`N`, :obj:`[P + 1]`.
        edge_index (torch.Tensor): Ids of sources, and targets in ascending order, :obj:`[2, E]`. Targets count from the first
            node of this process. The sources are replaced by extended nodes in place.
        edge_weight (torch.Tensor, optional): The weights, :obj:`[E]`.
        edge_ids (torch.Tensor, optional): The numbers of the edges in the whole graph, :obj:`[E]`.
        new_of_original (torch.Tensor, optional): The id of each node, :obj:`[N]`; :obj:`None` if ids are numbers.
        storage (Storage): Stores edges in memory or in files.
    """

    def __init__(
        self,
        group: Processes,
        offsets: Tensor,
        edge_index: Tensor,
        edge_weight: Tensor | None,
        edge_ids: Tensor | None,
        new_of_original: Tensor | None,
        storage: Storage,
    ) -> None:
        # The constructor of Graph would refuse edges from other processes.
        Numbered.__init__(self)
        self.group = group
        self.offsets = offsets
        self.storage = storage
        self.new_of_original = new_of_original
        self.original_of_new = None if new_of_original is None else torch.argsort(new_of_original)
        self.first = int(offsets[group.rank])
        #: The number of nodes of each process.
        self.sizes = tuple(offsets.diff().tolist())
        #: The number of nodes of all processes :math:`N`.
        self.total_nodes = sum(self.sizes)
        self.segments = ShardSegments(self, self.sizes[group.rank], edge_index.device)
        self._set_edges(edge_index, edge_weight, data=None)
        self._calls: set[str] = set()
        self._unions: dict[Hashable, Halo] = {}
        self._edges: dict[Hashable, ExtendedGraph] = {}
        self.edge_ids = edge_ids
        extended = ExtendedGraph.of_ids(group, offsets, edge_index, edge_weight, 'source_to_target')
        self.halo = extended.halo
        self._extended = {'source_to_target': extended}
        self.total_edges = sum(group.gather(edge_index.size(1)))

    def with_weights(self, edge_weight: Tensor) -> Graph:
        r"""Returns the same nodes and edges with other weights of the edges of this process."""
        graph = cast('Shard', super().with_weights(edge_weight))
        extended = self._extended['source_to_target'].with_weights(edge_weight)
        graph._extended = {'source_to_target': cast('ExtendedGraph', extended)}
        return graph

    def refuse_learned(self, what: str) -> None:
        r"""Raises an error if edge weights are learned, which gradients of other processes would not reach."""
        if self.edge_weight is not None and self.edge_weight.requires_grad:
            given = f'weights that require a gradient for {what} on a sharded graph'
            accepted = (
                'detached ones, and masks of edges with flow="source_to_target", such as AdjacencyMask and PowerSeriesMask'
            )
            raise ArgumentError('edge_weight', given, accepted)

    @property
    def bytes_sent(self) -> int:
        r"""The bytes that this process has sent for all graphs of this :obj:`timeout`."""
        return self.group.bytes_sent

    @property
    def nodes(self) -> Tensor:
        r"""The numbers of the nodes of this process in the whole graph, :obj:`[n]`. Their features are
        :obj:`x[sharded.nodes]`.
        """
        return self.segments.position

    def original(self, nodes: Tensor) -> Tensor:
        r"""Returns the numbers in the whole graph of nodes, given their ids."""
        return nodes if self.original_of_new is None else self.original_of_new[nodes]

    def ids(self, nodes: Tensor) -> Tensor:
        r"""Returns the ids of nodes, given their numbers in the whole graph."""
        return nodes if self.new_of_original is None else self.new_of_original[nodes]

    def union(self, first: Halo, second: Halo) -> Halo:
        r"""Returns the union of two halos, the first one itself if it contains the second in all processes. All processes call
        this.
        """

        def unite() -> Halo:
            nodes = torch.cat([first.nodes, second.nodes]).unique()
            larger = self.group.gather(nodes.numel() > first.nodes.numel())
            return Halo(self.group, self.offsets, nodes) if any(larger) else first

        return _recent(self._unions, (first.number, second.number), unite, _UNIONS)

    def edges_on(self, halo: Halo) -> ExtendedGraph:
        r"""Returns the edges of this process in their order, without weights, on the extended nodes of a larger halo."""

        def move() -> ExtendedGraph:
            source, target = self.edge_index
            return ExtendedGraph(halo, torch.stack([halo.extended(self.halo.ids())[source], target]), None)

        return _recent(self._edges, halo.number, move, _EDGES)

    def reporting_errors(self) -> AbstractContextManager[None]:
        r"""Returns a block for a part of a script that other processes wait for, such as a training loop. If the block raises
        an error, the other processes raise an error that names this process and its error. Errors while layers communicate, and
        errors that end a process, are reported without a block. A script needs the block only if it continues after an error,
        as in a notebook. Without the block, the other processes would wait for :obj:`timeout` seconds. After an error that not
        all processes had in the same place, create the :class:`ShardedGraph` again. Until then, calls raise an error.
        """
        return self.group.reporting()

    def check_call(self, signature: str) -> None:
        r"""Raises an error in all processes if their texts about a call differ. Processes compare each text once."""
        if signature not in self._calls:
            self.group.check_equal('layer', signature)
            self._calls.add(signature)

    def extended(self, flow: str) -> ExtendedGraph:
        r"""Returns the rows of the adjacency matrix of a flow at the nodes of this process. All processes call this."""
        if flow not in self._extended:
            self.refuse_learned(f'flow="{flow}"')
            given = self._extended['source_to_target']
            source, target = self.halo.ids()[given.edge_index]
            owner = torch.searchsorted(self.offsets, source, right=True) - 1
            weights = [] if self.edge_weight is None else [self.edge_weight]
            row, col, *weight = self.group.exchange_any([source, target, *weights], owner)
            row, order = (row - self.first).sort(stable=True)
            edge_index = torch.stack([row, col[order]])
            received = weight[0][order] if weight else None
            self._extended[flow] = ExtendedGraph.of_ids(self.group, self.offsets, edge_index, received, flow)
        return self._extended[flow]

    def neighborhood(self, flow: str, hops: int) -> tuple[Halo, Tensor, Tensor, Tensor]:
        r"""Returns the subgraph of all walks of some hops from the nodes of this process: its nodes as a halo, and row, column
        and weight of its edges on the extended nodes. All processes call this.
        """
        self.refuse_learned('a mask of the neighborhoods of nodes')
        extended = self.extended(flow)
        row, col = extended.row_and_col(flow)
        order = torch.argsort(row, stable=True)
        row, col, weight = row[order], extended.halo.ids()[col[order]], extended.weight[order]
        degree = torch.bincount(row, minlength=self.num_nodes)
        size = row.numel() if hops > 0 else 0
        rows, cols, weights = [row[:size] + self.first], [col[:size]], [weight[:size]]
        known = torch.arange(self.first, self.first + self.num_nodes, device=row.device)
        for _ in range(hops - 1):
            nodes = cols[-1].unique()
            nodes = nodes[~torch.isin(nodes, known)]
            known = torch.cat([known, nodes])
            received, (new_cols, new_weights) = Halo(self.group, self.offsets, nodes).rows(degree, [col, weight])
            rows.append(nodes.repeat_interleave(received))
            cols.append(new_cols)
            weights.append(new_weights)
        ids = torch.cat(cols)
        halo = Halo.of_columns(self.group, self.offsets, ids)
        return halo, halo.extended(torch.cat(rows)), halo.extended(ids), torch.cat(weights)

    def row_and_col(self, flow: str = 'source_to_target') -> tuple[Tensor, Tensor]:
        raise ArgumentError('graph', 'the rows of a whole graph', 'ShardedGraph.extended(flow)')

    def to(self, device: torch.device | str) -> Graph:
        if torch.empty(0, device=device).device == self.device:
            return self
        raise ArgumentError('device', str(device), f'{self.device}, where the graph was made')

    def __repr__(self) -> str:
        return (
            f'{type(self).__name__}(num_nodes={self.num_nodes} of {self.total_nodes}, num_edges={self.num_edges} of '
            f'{self.total_edges}, process {self.group.rank} of {self.group.size})'
        )


def reporting(function: Callable[P, Value]) -> Callable[P, Value]:
    r"""Returns a function of a shard, or of its segments, whose errors are reported to the other processes."""

    @wraps(function)
    def reported(*args: P.args, **kwargs: P.kwargs) -> Value:
        where = cast('Shard | ShardSegments', args[0])
        with where.group.reporting():
            return function(*args, **kwargs)

    return reported


def _recent(kept: dict[Hashable, Value], key: Hashable, make: Callable[[], Value], most: int) -> Value:
    r"""Returns what a function makes, the same as before for the keys that were used last."""
    kept[key] = kept.pop(key) if key in kept else make()
    if len(kept) > most:
        del kept[next(iter(kept))]
    return kept[key]
