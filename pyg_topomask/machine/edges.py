r"""Passes over the edges of a graph, as machine code."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from pyg_topomask.machine.compiled import compiled
from pyg_topomask.machine.threads import arrays_of


@compiled
def _normalize(row, col, weight, of_rows, of_cols, out):  # type: ignore[no-untyped-def]
    for edge in range(len(row)):
        size = abs(np.float64(weight[edge]))
        of_rows[row[edge]] += size
        if of_cols is not None:
            of_cols[col[edge]] += size
    for node in range(len(of_rows)):
        if of_cols is None:
            of_rows[node] = 1 / of_rows[node] if of_rows[node] > 0 else 0.0
        else:
            of_rows[node] = 1 / np.sqrt(of_rows[node]) if of_rows[node] > 0 else 0.0
            of_cols[node] = 1 / np.sqrt(of_cols[node]) if of_cols[node] > 0 else 0.0
    for edge in range(len(row)):
        scale = of_rows[row[edge]]
        if of_cols is not None:
            scale *= of_cols[col[edge]]
        out[edge] = weight[edge] * scale


def normalized_weight(row: Tensor, col: Tensor, weight: Tensor, num_nodes: int, symmetric: bool) -> Tensor:
    r"""Returns :meth:`pyg_topomask.graphs.Graph.normalized_weight` for :obj:`"sym"`, or for :obj:`"rw"`."""
    of_rows, of_cols, out = np.zeros(num_nodes), np.zeros(num_nodes) if symmetric else None, np.empty(len(row))
    _normalize(*arrays_of((row, col, weight)), of_rows, of_cols, out)
    return torch.from_numpy(out)
