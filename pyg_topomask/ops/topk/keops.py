r"""Search by KeOps, whose symbolic matrices never exist in memory."""

from __future__ import annotations

import importlib
from typing import Any

import torch
from torch import Tensor


def load() -> Any:
    r"""Imports KeOps' :obj:`LazyTensor`, or says how to install it."""
    try:
        pykeops, lazy = importlib.import_module('pykeops'), importlib.import_module('pykeops.torch')
    except Exception as error:  # it looks for compilers when it is imported, which fails in many ways
        raise ImportError(f'backend="keops" needs KeOps ({error}): install pyg_topomask with its extra [keops]') from error
    pykeops.set_verbose(False)
    return lazy.LazyTensor


def search(q: Tensor, k: Tensor, first: Tensor, count: Tensor, memory: int, best: Tensor) -> None:
    r"""Writes the best keys of each query. Arguments are those of :func:`~pyg_topomask.ops.topk.dense.search`,
    but each graph must have at least as many nodes as requested keys, which KeOps does not check.
    """
    lazy_tensor = load()
    heads, num_nodes, _ = q.shape
    num = best.size(2)
    if count.numel() == 1:
        nodes = slice(int(first), int(first) + int(count))
        query, key = lazy_tensor(q[:, nodes, None].contiguous()), lazy_tensor(k[:, None, nodes].contiguous())
        best[:, nodes] = (-(query | key)).argKmin(num, dim=2).view(heads, -1, num) + int(first)
        return
    first, count = first.to(q.device), count.to(q.device)
    # One block of pairs for each graph and head, on the diagonal of one matrix over the nodes of all heads.
    start, size = (torch.arange(heads, device=q.device).unsqueeze(1) * num_nodes + first).flatten(), count.repeat(heads)
    block = torch.stack([start, start + size], dim=1).int()
    last = torch.arange(1, len(block) + 1, dtype=torch.int32, device=q.device)
    query, key = lazy_tensor(q.reshape(-1, 1, q.size(2))), lazy_tensor(k.reshape(1, -1, k.size(2)))
    score = -(query | key)
    score.ranges = (block, last, block, block, last, block)
    row = torch.repeat_interleave(start - (size.cumsum(0) - size), size)
    row += torch.arange(len(row), device=q.device)
    best.view(-1, num)[row] = score.argKmin(num, dim=1)[row] % num_nodes
