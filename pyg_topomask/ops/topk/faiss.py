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


def search_graph(q: Tensor, k: Tensor, memory: int, best: Tensor) -> None:
    r"""Writes the best keys of each query. Arguments are those of :func:`~pyg_topomask.ops.topk.chunked.search_graph`."""
    index = load().IndexFlatIP(q.size(1))
    index.add(k.float().contiguous().numpy())
    best.copy_(torch.from_numpy(index.search(q.float().contiguous().numpy(), best.size(1))[1]))
