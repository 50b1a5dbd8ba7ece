r"""The nodes of other processes that the rows of a sparse matrix refer to, and how their numbers come and go."""

from __future__ import annotations

from itertools import count
from typing import Any
from weakref import WeakValueDictionary

import torch
from torch import Tensor

from pyg_topomask.distributed.communication import Processes
from pyg_topomask.distributed.storage import blocks
from pyg_topomask.flow import row_and_col
from pyg_topomask.graph import Graph

_NUMBERS = count()
#: Objects by the number that stands for them in a structure, which holds plain values alone.
BY_NUMBER: WeakValueDictionary[int, Any] = WeakValueDictionary()


class Numbered:
    r"""An object that a structure refers to by its number."""

    def __init__(self) -> None:
        self.number = next(_NUMBERS)
        BY_NUMBER[self.number] = self


class Halo(Numbered):
    r"""The nodes of other processes that some columns of a sparse matrix stand for. Together with the nodes of this process,
    which come first, they are the *extended* nodes. The lists of what to send and receive are made once; all processes make
    them together.

    Args:
        group (Processes): The processes.
        offsets (torch.Tensor): Where the nodes of each process begin, and :math:`N`, :obj:`[P + 1]`.
        nodes (torch.Tensor): The ids of the nodes of other processes, ascending, :obj:`[h]`.
    """

    def __init__(self, group: Processes, offsets: Tensor, nodes: Tensor) -> None:
        super().__init__()
        self.group = group
        self.nodes = nodes
        self.first, after = (int(offset) for offset in offsets[group.rank : group.rank + 2])
        self.num_nodes = after - self.first
        owner = torch.searchsorted(offsets, nodes, right=True) - 1
        self.received: list[int] = torch.bincount(owner, minlength=group.size).tolist()
        self.sent = [counts[group.rank] for counts in group.gather(self.received)]
        #: The nodes of this process that others have in their halos, by process.
        self.send = group.exchange(nodes, self.received, self.sent) - self.first

    @classmethod
    def of_columns(cls, group: Processes, offsets: Tensor, col: Tensor) -> Halo:
        r"""Makes the halo of some columns.

        Args:
            group (Processes): The processes.
            offsets (torch.Tensor): Where the nodes of each process begin, and :math:`N`, :obj:`[P + 1]`.
            col (torch.Tensor): The ids of nodes, :obj:`[nnz]`.
        """
        first, after = (int(offset) for offset in offsets[group.rank : group.rank + 2])
        nodes = col[:0]
        for block in blocks(col.numel()):
            remote = (col[block] < first) | (col[block] >= after)
            nodes = torch.cat([nodes, col[block][remote]]).unique()
        return cls(group, offsets, nodes)

    @property
    def size(self) -> int:
        r"""The number of extended nodes."""
        return self.num_nodes + self.nodes.numel()

    @property
    def bytes_per_column(self) -> int:
        r"""The bytes of one float32 for each node that is sent."""
        return 4 * self.send.numel()

    def extended(self, nodes: Tensor) -> Tensor:
        r"""Returns the extended nodes of ids, each of this process or in the halo."""
        local = nodes - self.first
        inside = (local >= 0) & (local < self.num_nodes)
        return torch.where(inside, local, self.num_nodes + torch.searchsorted(self.nodes, nodes))

    def ids(self) -> Tensor:
        r"""Returns the id of each extended node."""
        return torch.cat([torch.arange(self.first, self.first + self.num_nodes, device=self.nodes.device), self.nodes])

    def gather(self, x: Tensor) -> Tensor:
        r"""Returns the rows of the extended nodes, :obj:`[n + h, ...]`, for those of this process. Differentiable; it sends
        :attr:`send` rows, and in the backward pass those of :attr:`nodes`.
        """
        result: Tensor = _Gather.apply(x, self)
        return result

    def scatter(self, x: Tensor) -> Tensor:
        r"""Adds the rows of the halo, :obj:`[n + h, ...]`, to those of the processes that they belong to, and returns the sums
        of this process, :obj:`[n, ...]`: the transpose of :meth:`gather`. Differentiable.
        """
        result: Tensor = _Scatter.apply(x, self)
        return result

    def pad(self, x: Tensor) -> Tensor:
        r"""Returns rows of zeros for the halo after those of this process. Nothing is sent."""
        return torch.cat([x, x.new_zeros(self.nodes.numel(), *x.shape[1:])])


class _Gather(torch.autograd.Function):
    @staticmethod
    def forward(x: Tensor, halo: Halo) -> Tensor:
        received = halo.group.exchange(x.index_select(0, halo.send), halo.sent, halo.received)
        return torch.cat([x, received]) if halo.group.size > 1 else x.clone()

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        _, ctx.halo = inputs

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        return _Scatter.apply(grads[0], ctx.halo), None


class _Scatter(torch.autograd.Function):
    @staticmethod
    def forward(x: Tensor, halo: Halo) -> Tensor:
        received = halo.group.exchange(x[halo.num_nodes :], halo.received, halo.sent)
        return x[: halo.num_nodes].index_add(0, halo.send, received)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        _, ctx.halo = inputs

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        return _Gather.apply(grads[0], ctx.halo), None


class ExtendedGraph(Graph):
    r"""The rows of the adjacency matrix at the nodes of this process: a graph of the extended nodes, in which those of the halo
    attend to nothing.
    """

    def __init__(self, halo: Halo, edge_index: Tensor, weight: Tensor | None, flow: str) -> None:
        super().__init__(edge_index, halo.size, weight)
        self.halo = halo
        self.flow = flow

    @classmethod
    def of_ids(cls, group: Processes, offsets: Tensor, edge_index: Tensor, weight: Tensor | None, flow: str) -> ExtendedGraph:
        r"""Makes the halo of the columns, which are ids, and overwrites them by extended nodes. All processes call this.

        Args:
            group (Processes): The processes.
            offsets (torch.Tensor): Where the nodes of each process begin, and :math:`N`, :obj:`[P + 1]`.
            edge_index (torch.Tensor): The edges, whose rows are counted from the first node of this process, :obj:`[2, E]`.
            weight (torch.Tensor, optional): The weights, :obj:`[E]`.
            flow (str): Which end of an edge is its row.
        """
        _, col = row_and_col(edge_index, flow)
        halo = Halo.of_columns(group, offsets, col)
        for block in blocks(col.numel()):
            col[block] = halo.extended(col[block])
        return cls(halo, edge_index, weight, flow)

    def _degree(self, end: Tensor, weight: Tensor) -> Tensor:
        return self.halo.gather(self.halo.scatter(super()._degree(end, weight)))

    def weighted(self, weight: Tensor) -> ExtendedGraph:
        r"""Returns the same rows with other weights."""
        return ExtendedGraph(self.halo, self.edge_index, weight, self.flow)
