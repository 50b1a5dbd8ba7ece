r"""Sums of absolute values of rows compared with bounds, as machine code: one pass, which writes nothing."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from pyg_topomask.machine.compiled import compiled
from pyg_topomask.machine.threads import ALONE, array_of, in_threads


@compiled(any_order=True)
def _in_range(rows, least, most, zeros):  # type: ignore[no-untyped-def]
    inside = True
    # Without an early end, so that rows are summed side by side.
    for row in range(rows.shape[0]):
        size = rows.dtype.type(0)
        for column in range(rows.shape[1]):
            size += abs(rows[row, column])
        inside &= (least <= size and size <= most) or (zeros and size == 0)
    return inside


def in_range(x: Tensor, least: float, most: float, zeros: bool) -> bool:
    r"""Returns whether the sums of absolute values over the last dimension are in the bounds, or are 0 if that is allowed."""
    rows = array_of(x).reshape(-1, x.size(-1))
    parts = np.array_split(rows, torch.get_num_threads()) if rows.size > ALONE else [rows]
    return all(in_threads(lambda part: bool(_in_range(part, least, most, zeros)), parts))
