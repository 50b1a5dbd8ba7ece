r"""The precision of sums: at least float32, also of numbers in half precision."""

from __future__ import annotations

from functools import reduce

import torch
from torch import Tensor


def wide_dtype(*tensors: Tensor) -> torch.dtype:
    r"""Returns the data type of sums over some tensors together."""
    return reduce(torch.promote_types, (tensor.dtype for tensor in tensors), torch.float32)


def widened(x: Tensor) -> Tensor:
    r"""Returns a tensor in the data type of its sums."""
    return x.to(wide_dtype(x))
