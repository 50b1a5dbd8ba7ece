r"""Heat kernels on a sharded graph."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from torch import Tensor

from pyg_topomask.distributed.halo import Halo
from pyg_topomask.distributed.operators import HaloRows, ShardPolynomial
from pyg_topomask.distributed.shard import Shard
from pyg_topomask.graphs.sparse_pattern import SparsePattern
from pyg_topomask.masks.adjacency import AdjacencyMask
from pyg_topomask.masks.heat_kernel import HeatKernelMask, HeatState
from pyg_topomask.operators.base import MaskOperator
from pyg_topomask.operators.exponential import GlobalReductions
from pyg_topomask.operators.given import Sparse
from pyg_topomask.operators.sparse_matmul import multiply


class ShardReductions(GlobalReductions):
    r"""Reductions over all nodes for a heat kernel, from the rows of this process on its extended nodes."""

    def __init__(self, graph: Shard, halo: Halo, pattern: SparsePattern) -> None:
        super().__init__(pattern)
        self.graph = graph
        self.halo = halo

    def degree(self, weight: Tensor) -> Tensor:
        return self.halo.gather(self.halo.scatter(super().degree(weight)))  # sums those of all processes

    def asymmetric(self, weight: Tensor) -> tuple[int, int] | None:
        ids, num_nodes = self.halo.ids(), self.graph.total_nodes
        local = self.row < self.graph.num_nodes
        row, col, value = ids[self.row[local]], ids[self.col[local]], weight[local]
        owner = torch.searchsorted(self.graph.offsets, col, right=True) - 1
        mirrored_row, mirrored_col, mirrored = self.graph.group.exchange_any([col, row, value], owner)
        # Every process has its diagonal entries, so that there are some.
        keys, order = (mirrored_row * num_nodes + mirrored_col).sort()
        found = self._difference(row * num_nodes + col, value, keys, mirrored[order])
        pair = None if found is None else tuple(self.graph.original(torch.stack([row[found], col[found]])).tolist())
        return next((each for each in self.graph.group.gather(pair) if each is not None), None)

    def components(self) -> tuple[Tensor, int]:
        # Components of each shard, then of what edges between shards join.
        group, size = self.graph.group, self.graph.num_nodes
        local, count = super().components()
        counts = group.gather(count)
        offset = sum(counts[: group.rank])
        # The halo nodes of a process are extended nodes of its components, and nodes of another.
        label = local + offset
        of_owner = self.halo.gather(label[:size])
        pairs = torch.stack([label, of_owner])[:, size:].unique(dim=1)
        joined = torch.cat(group.gather(pairs.t())).numpy()
        total = sum(counts)
        matrix = coo_array((np.ones(len(joined)), (joined[:, 0], joined[:, 1])), shape=(total, total))
        number, component = connected_components(matrix, directed=False)
        return torch.from_numpy(component).long()[label], int(number)

    def product(self, weight: Tensor, vector: Tensor) -> Tensor:
        rows = multiply(self.pattern.rowptr, self.pattern.col, weight, vector)
        return self.halo.gather(rows[: self.graph.num_nodes])

    def sums(self, x: Tensor, component: Tensor, count: int) -> Tensor:
        size = self.graph.num_nodes
        return self.graph.group.sum(super().sums(x[:size], component[:size], count))

    def largest(self, x: Tensor) -> Tensor:
        return self.graph.group.maximum(x)

    def smallest(self, x: Tensor) -> Tensor:
        return self.graph.group.minimum(x)


def prepare_heat(mask: HeatKernelMask, graph: Shard, generator: torch.Generator | None) -> tuple[Halo, HeatState]:
    extended = graph.extended(mask.flow)
    adjacency = AdjacencyMask(1, 1.0, None, mask.flow).prepare(extended)
    state = mask.prepare_on(adjacency, ShardReductions(graph, extended.halo, adjacency.pattern))
    return extended.halo, state


def bind_heat(mask: HeatKernelMask, graph: Shard, state: Any) -> MaskOperator:
    halo, heat = state
    coefficients, method = mask.coefficients(heat)
    value = heat.value.to(mask.lam.dtype).unsqueeze(0)
    return ShardPolynomial(
        coefficients.to(mask.lam.dtype),
        HaloRows(Sparse(value, heat.pattern), halo.number),
        graph.number,
        method,
        mask.tolerance,
        segments=graph.segments,
        heads=mask.heads,
        cost=coefficients.size(1) * heat.pattern.nnz,
    )
