r"""Search by faiss, on the CPU, in float32."""

from __future__ import annotations

import importlib
from typing import Any

import torch
from torch import Tensor


def load() -> Any:
    r"""Imports faiss, or says how to install it."""
    try:
        return importlib.import_module('faiss')
    except ImportError as error:
        raise ImportError('backend="faiss" needs faiss: install pyg_topomask with its extra [faiss]') from error


def search(q: Tensor, k: Tensor, first: Tensor, count: Tensor, memory: int, best: Tensor) -> None:
    r"""Writes the best keys of each query. Arguments are those of :func:`~pyg_topomask.ops.topk.dense.search`."""
    faiss = load()
    for start, size in zip(first.tolist(), count.tolist(), strict=True):
        nodes, num = slice(start, start + size), min(best.size(2), size)
        for head in range(q.size(0)):
            index = faiss.IndexFlatIP(q.size(2))
            index.add(k[head, nodes].float().contiguous().numpy())
            position = index.search(q[head, nodes].float().contiguous().numpy(), num)[1]
            best[head, nodes, :num] = torch.from_numpy(position) + start
