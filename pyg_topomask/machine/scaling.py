r"""Sums of absolute values of rows compared with bounds, as machine code: one pass, which writes nothing."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from pyg_topomask.machine.compiled import compiled
from pyg_topomask.machine.threads import ALONE, Array, in_threads


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


def in_range(tensors: Sequence[Tensor], least: float, most: float, zeros: bool) -> bool:
    r"""Returns whether the sums of absolute values over the last dimension are in the bounds, or are 0 if that is allowed."""

    def inside(rows: Array) -> bool:
        return bool(_in_range(rows, least, most, zeros))

    def all_inside(x: Tensor) -> bool:
        rows = x.detach().contiguous().view(-1, x.size(-1)).numpy()
        if rows.size <= ALONE:
            return inside(rows)
        return all(in_threads(inside, np.array_split(rows, torch.get_num_threads())))

    return all(map(all_inside, tensors))
