r"""Dot products of the rows of the powers of a matrix: the norms of the expected visits of random walks."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import scipy
import torch
from numpy.typing import NDArray
from torch import Tensor

from pyg_topomask.graphs.sparse_pattern import SparsePattern
from pyg_topomask.machine.backend import kernel
from pyg_topomask.utils.functorch import LoopedFunction, gradients
from pyg_topomask.walks.pairs import Meetings

# The largest number of entries in a block of rows of the powers.
_BLOCK = 2**23


@torch.compiler.disable  # torch.compile would read SciPy as Python
def gram_of_powers(weight: Tensor, pattern: SparsePattern, max_power: int, num_rows: int) -> Tensor:
    r"""Returns :math:`\mathbf{p}_{l,i}^{\top} \mathbf{p}_{l',i}` for the first rows :math:`\mathbf{p}_{l,i}` of the powers
    :math:`\mathbf{P}^l` of a matrix with the given entries, :obj:`[num_rows, L + 1, L + 1]`, in float64. Differentiable in
    the entries. The backward pass computes the powers again.
    """
    gram: Tensor = _Gram.apply(weight.double(), max_power, num_rows, *pattern.tensors)
    return gram


def _blocks_of_rows(pattern: SparsePattern, max_power: int, num_rows: int) -> list[NDArray[np.int64]]:
    r"""Divides the first rows into blocks, of which all powers together have a bounded number of entries."""
    step, size = pattern.to_scipy(), pattern.num_rows
    # A row of a power has at most as many entries as there are nodes, or walks.
    walks, most = np.ones(size), np.zeros(size)
    for _ in range(max_power + 1):
        most, walks = most + np.minimum(walks, size), step @ walks
    block = (most[:num_rows].cumsum() // _BLOCK).astype(np.int64)
    return np.split(np.arange(num_rows), np.flatnonzero(np.diff(block)) + 1)


def _plain(rows: Tensor, pattern: SparsePattern, max_power: int, weight: Tensor) -> Tensor:
    r"""The products of some rows, :obj:`[rows, L + 1, L + 1]`, by operations that autograd differentiates."""
    kinds = max_power + 1
    power = SparsePattern.from_sorted(torch.arange(rows.numel(), device=rows.device), rows, rows.numel(), pattern.num_rows)
    value, step = weight.new_ones(1, rows.numel()), weight[pattern.perm_t].unsqueeze(0)
    patterns, values = [power], [value]
    for _ in range(max_power):
        meetings = Meetings.of(patterns[-1], pattern.T)
        patterns.append(meetings.pattern)
        values.append(meetings.entries(values[-1], step))
    union, slots = SparsePattern.union(*patterns)
    pairs = zip(slots, values, strict=True)
    rows_of_powers = torch.stack([weight.new_zeros(union.nnz).index_add(0, slot, value[0]) for slot, value in pairs], dim=1)
    products = rows_of_powers.unsqueeze(2) * rows_of_powers.unsqueeze(1)
    return weight.new_zeros(rows.numel(), kinds, kinds).index_add(0, union.row, products)


class _Gram(LoopedFunction):
    @staticmethod
    def forward(weight: Tensor, max_power: int, num_rows: int, *tensors: Tensor) -> Tensor:
        pattern = SparsePattern(*tensors)
        step, identity = pattern.to_scipy(weight), scipy.sparse.eye_array(pattern.num_rows, format='csr')
        gram = np.empty((num_rows, max_power + 1, max_power + 1))
        for rows in _blocks_of_rows(pattern, max_power, num_rows):
            powers = [identity[rows]]
            for length in range(max_power + 1):
                if length > 0:
                    powers.append(powers[-1] @ step)
                for other, power in enumerate(powers):
                    gram[rows, length, other] = gram[rows, other, length] = (power * powers[-1]).sum(axis=1)
        return torch.from_numpy(gram).to(weight.device)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        weight, ctx.max_power, ctx.num_rows, *pattern = inputs
        ctx.save_for_backward(weight, *pattern)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        weight, *tensors = ctx.saved_tensors
        pattern, (grad,), compiled = SparsePattern(*tensors), grads, kernel('expected.gram_backward', weight.device)
        if compiled and not torch.is_grad_enabled():
            total = compiled(weight, pattern, grad)
        else:
            total = torch.zeros_like(weight)
            for block in _blocks_of_rows(pattern, ctx.max_power, ctx.num_rows):
                rows = torch.from_numpy(block).to(weight.device)
                total = total + gradients(partial(_plain, rows, pattern, ctx.max_power), [grad[rows]], weight)[0]
        return (total, None, None) + (None,) * len(tensors)
